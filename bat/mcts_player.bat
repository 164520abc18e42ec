@echo off
rem For GUIs on Windows: register this file as the engine.
rem Errors of the engine go to mcts_player.log beside it, or to the folder for temporary
rem files when the log is taken: cmd lets one program at a time write to it, and a GUI may
rem start the engine twice.
setlocal
cd /d "%~dp0"
set "PYTHON=..\.venv\Scripts\python.exe"
if not exist "%PYTHON%" set "PYTHON=python"
set "LOG=mcts_player.log"
(call ) 2>>"%LOG%" || set "LOG=%TEMP%\mcts_player_%RANDOM%.log"
"%PYTHON%" ..\mcts_player_usi.py 2>>"%LOG%"
