import subprocess
import sys


def test_matplotlib_is_imported_only_to_draw():
    names = ("curves", "explorer", "map", "matrix", "registration", "style")
    modules = ", ".join(f"skawhmm.plot._{name}" for name in names)
    code = f"import sys, {modules}; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
