@echo off
rem Makes .venv, the Python environment of all programs. A double click starts it.
rem The argument nopause is for train.bat and play.bat, which wait for a key themselves. With it,
rem nothing is done if .venv is newer than pyproject.toml and its Python starts.
setlocal
cd /d "%~dp0.." || goto failed
if not exist ".venv\Scripts\python.exe" goto new
if not "%~1"=="nopause" goto start
".venv\Scripts\python.exe" -c "import os, sys; sys.exit(os.path.getmtime('pyproject.toml') > os.path.getmtime('.venv/.for-train'))" >nul 2>&1
if not errorlevel 1 goto ready

:start
".venv\Scripts\python.exe" -c "" >nul 2>&1
if not errorlevel 1 goto install

:new
rem The .venv of another system, or of a Python that is gone, is made anew.
if exist ".venv" echo The Python of .venv does not start, so .venv is made anew.
if exist ".venv" rmdir /s /q ".venv"
set "PYTHON="
for %%V in (3.14 3.13 3.12 3.11 3.10 3.9) do if not defined PYTHON call :try py -%%V
if not defined PYTHON call :try python
if not defined PYTHON goto no_python
echo Making .venv by %PYTHON%.
%PYTHON% -m venv .venv || goto failed

:install
set "PIP_DISABLE_PIP_VERSION_CHECK=1"
echo Installing the packages. This takes some minutes and needs the internet.
".venv\Scripts\python.exe" -m pip install --quiet "pip>=21.3" "setuptools>=77,<82" || goto failed
".venv\Scripts\python.exe" -m pip install --quiet --no-build-isolation --use-pep517 -e ".[plot,board,7z]" || goto failed
rem numba and the fast board have no wheels for some systems.
".venv\Scripts\python.exe" -m pip install --quiet --no-build-isolation --use-pep517 --only-binary numba,llvmlite,rsshogi -e ".[search]" || echo The packages of the extra search could not be installed. The search works without them, but is slower.
rem OpenVINO makes the search much faster. All else works without it.
".venv\Scripts\python.exe" -m pip install --quiet --no-build-isolation --use-pep517 -e ".[openvino]" || echo OpenVINO could not be installed. The search works without it, but is slower.
rem Only Python 3.12 needs this command; pyproject.toml says why.
".venv\Scripts\python.exe" -m pip install --quiet --no-deps "cshogi>=1.1; python_version == '3.12' and platform_machine in 'x86_64 AMD64'" || goto failed
rem The compiled functions stay on the disk, so the first start of an engine need not wait for them.
".venv\Scripts\python.exe" -c "from pydlshogi.uct.search import compile_search; compile_search()" >nul 2>&1
type nul >".venv\.for-train"
echo The environment .venv is ready. Next: bat\train.bat trains, bat\play.bat plays.
if not "%~1"=="nopause" pause

:ready
exit /b 0

:no_python
echo setup: error: Python 3.9 to 3.14 was not found. Install it from https://www.python.org/ and start this file again.
if not "%~1"=="nopause" pause
exit /b 1

:failed
echo setup: error: the line above says what failed. Remove the folder .venv and start this file again.
if not "%~1"=="nopause" pause
exit /b 1

:try
%* -c "import sys; sys.exit(not (3, 9) <= sys.version_info < (3, 15))" >nul 2>&1
if not errorlevel 1 set "PYTHON=%*"
exit /b 0
