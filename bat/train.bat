@echo off
rem Trains a network on the 200 games of the folder kifu, as make train does. A double click starts it.
rem Started again, it continues an interrupted run.
setlocal
cd /d "%~dp0.." || goto failed
call bat\setup.bat nopause
if errorlevel 1 goto failed
if exist "run\finished" goto finished
set "RESUME="
if exist "run\state_policy" set "RESUME=--initmodel run\model_policy --resume run\state_policy"
if defined RESUME echo Continuing the run in the folder run.
if not exist "run" mkdir "run"
rem The training names this command if it is interrupted.
set "PYDLSHOGI_CONTINUE=bat\train.bat"
echo Ctrl-C stops the training. To continue, start this file again. To start over, rename the folder run.
set "FILES=--model run\model_policy --state run\state_policy --log run\log.txt"
set "RECIPE=--network policy_hand1x1_bn --dirac --batchsize 64 --lr 0.03 --momentum 0.9 --nesterov --weight_decay 1e-4 --warmup 40 --lr_schedule cosine --eval_interval 50"
".venv\Scripts\python.exe" train_policy.py kifu\kifulist_train.txt kifu\kifulist_test.txt --epoch 1 %FILES% %RECIPE% %RESUME% || goto failed
type nul >"run\finished"
".venv\Scripts\python.exe" utils\plot_log.py run\log.txt --output run\log.png || goto failed

:finished
if not exist "run\log.png" ".venv\Scripts\python.exe" utils\plot_log.py run\log.txt --output run\log.png || goto failed
echo Model: run\model_policy. Log: run\log.txt. Curve: run\log.png.
echo To play with it, start bat\play.bat. To start over, rename the folder run.
pause
exit /b 0

:failed
echo train: stopped. To continue, start this file again. To start over, rename the folder run.
pause
exit /b 1
