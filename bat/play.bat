@echo off
rem Checks that the engine plays, and tells how to register it in a GUI. A double click starts it.
setlocal
cd /d "%~dp0.." || goto failed
call bat\setup.bat nopause
if errorlevel 1 goto failed
set "MODEL=%CD%\model\model_policy_value"
if exist "run\train\model_policy" set "MODEL=%CD%\run\train\model_policy"
echo The engine loads "%MODEL%" and plays a move.
".venv\Scripts\python.exe" .ci\play.py "%MODEL%" ".venv\Scripts\python.exe" policy_player_usi.py || goto failed
echo The engine works. Register this file as a USI engine in ShogiHome, ShogiGUI or Shogidokoro:
echo     "%CD%\bat\policy_player.bat"
echo For a stronger engine, which searches, register this file:
echo     "%CD%\bat\mcts_player.bat"
echo Both play with model\model_policy_value.
if exist "run\train\model_policy" echo To play with your own model, give the option modelfile of policy_player this value: "%MODEL%"
pause
exit /b 0

:failed
echo play: error: the engine does not work yet. The lines above say why.
pause
exit /b 1
