@echo off
rem Opens the board in the browser: play against the shipped models and those in the folder run.
rem A double click starts it. Drop a model file on this file to play against that one.
setlocal
cd /d "%~dp0.." || goto failed
call bat\setup.bat nopause
if errorlevel 1 goto failed
set "OPTION="
if not "%~1"=="" set "OPTION=--model"
echo To end the board, close this window or press Ctrl-C.
".venv\Scripts\python.exe" -m pydlshogi play %OPTION% %* || goto failed
pause
exit /b 0

:failed
echo play: stopped. The lines above say why.
pause
exit /b 1
