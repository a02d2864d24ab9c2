"""The results of checks."""

import time

from wire import Skipped


class Report:
    """Runs checks, and prints and counts their results."""

    def __init__(self, only):
        self.only, self.passed, self.skipped, self.failed = only, 0, 0, 0

    def wants(self, name):
        """Returns whether a check was selected."""
        return not self.only or any(word in name for word in self.only)

    def check(self, of, function, name=None):
        """Runs a check if it was selected."""
        name = f"{of}: {(name or function.__name__).replace('_', ' ')}"
        if not self.wants(name):
            return
        began = time.monotonic()
        try:
            self.found(name, function(), time.monotonic() - began)
        except Skipped as reason:
            self.skipped += 1
            print(f"skipped  {name}: {reason}", flush=True)
        except Exception as error:
            self.found(name, f"{type(error).__name__}: {error}", time.monotonic() - began)

    def found(self, name, problems, seconds):
        """Records and prints the result of a check."""
        if problems:
            self.failed += 1
            print(f"FAILED   {name}\n         " + problems.strip().replace("\n", "\n         "), flush=True)
        else:
            self.passed += 1
            print(f"ok       {name} ({seconds:.1f} s)", flush=True)

    def end(self, began):
        """Prints the totals and the time since `began`, and returns the program's exit code."""
        seconds = time.monotonic() - began
        print(f"{self.passed} checks passed, {self.failed} failed, {self.skipped} skipped, in {seconds:.0f} s")
        return 1 if self.failed or not self.passed else 0
