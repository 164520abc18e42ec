@echo off
rem Trains a network on the 200 games of the folder kifu, as make train does. A double click starts it.
rem To train on games of your own, drop their folder on this file. Started again, it continues an
rem interrupted run. An argument --recipe value trains a policy and a value (train_value.bat).
setlocal
cd /d "%~dp0.." || goto failed
call bat\setup.bat nopause
if errorlevel 1 goto failed
rem The training names this command if it is interrupted.
set "PYDLSHOGI_CONTINUE=bat\train.bat with the same arguments"
echo Ctrl-C stops the training. To continue, start this file again.
".venv\Scripts\python.exe" -m pydlshogi train_kifu %* || goto failed
echo To play against your own model, start bat\play.bat.
pause
exit /b 0

:failed
echo train: stopped. To continue, start this file again. To start over, rename the folder of the run.
pause
exit /b 1
