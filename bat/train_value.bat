@echo off
rem Trains a small network with policy and value on the 200 games of the folder kifu, or on a folder
rem that is dropped on this file, as make train-value does. The search needs the value.
setlocal
cd /d "%~dp0" || exit /b 1
rem Not with call, which would change a % or a ^ in the name of the folder.
train.bat --recipe value %*
