@echo off
rem Runs everything that needs an NVIDIA GPU, as make gpu does. A double click starts it.
rem Results: the folder run\gpu. The other extra with CuPy is cuda13; see docs\gpu.md.
setlocal
cd /d "%~dp0.." || goto failed
nvidia-smi -L >nul 2>&1 || goto no_gpu
call bat\setup.bat nopause
if errorlevel 1 goto failed
".venv\Scripts\python.exe" -c "import cupy, pytest, hypothesis" >nul 2>&1 && goto run
echo Installing CuPy. This takes some minutes and needs the internet.
".venv\Scripts\python.exe" -m pip install --quiet --no-build-isolation --use-pep517 -e ".[cuda12,plot,7z]" pytest hypothesis || goto failed

:run
".venv\Scripts\python.exe" benchmarks\gpu_check.py || goto failed
echo Results: run\gpu\table.md
pause
exit /b 0

:no_gpu
echo gpu: this machine has no NVIDIA GPU, or its driver is not installed.
pause
exit /b 1

:failed
echo gpu: something failed. The lines above say what. Results so far: run\gpu\table.md
pause
exit /b 1
