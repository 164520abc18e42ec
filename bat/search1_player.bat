@echo off
rem Register this file as the engine in a GUI on Windows.
rem Errors go to search1_player.log beside this file. If another engine uses that file,
rem they go to the folder for temporary files: cmd lets only one program write to a file.
rem Engines that start in the same second get the same %RANDOM%, hence the hundredths of the second.
setlocal
cd /d "%~dp0" || exit /b 1
set "PYTHON=..\.venv\Scripts\python.exe"
if not exist "%PYTHON%" set "PYTHON=python"
set "LOG=search1_player.log"
(call ) 2>>"%LOG%" || set "LOG=%TEMP%\search1_player_%RANDOM%_%TIME:~-2%.log"
"%PYTHON%" ..\search1_player_usi.py %* 2>>"%LOG%"
