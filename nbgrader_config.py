"""Tells nbgrader where the course lives: authored notebooks in solutions/, student notebooks in labs/.

What students hand in, their marks and the gradebook never enter the repository. They live in the folder that
the environment variable STARVELAB_COURSE names, or in ~/starvelab-course. How is graded stands in
`starvelab_grader.configure`, which any course can call.
"""

import os
import sys
from pathlib import Path

from starvelab_grader import configure
from starvelab_grader.configuration import make_private

repository = Path(__file__).resolve().parent
course = Path(os.environ.get("STARVELAB_COURSE") or "~/starvelab-course").expanduser().resolve()
if not os.environ.get("STARVELAB_COURSE"):
    print(
        f"The course folder is {course}. For another one set the variable STARVELAB_COURSE (on a JupyterHub: "
        "in ~/.jupyter/nbgrader_config.py).",
        file=sys.stderr,
    )
    os.environ["STARVELAB_COURSE"] = str(course)  # this file is read more than once
make_private(course)

c = get_config()  # noqa: F821 (traitlets puts it there when it reads this file)
configure(c)

c.CourseDirectory.root = str(repository)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "labs"
for step in ("submitted", "autograded", "feedback", "solution", "source_with_tests"):
    c.CourseDirectory[f"{step}_directory"] = str(course / step)
c.CourseDirectory.db_url = f"sqlite:///{course / 'gradebook.db'}"
c.AutograderApp.requirements = ["starvelab[notebooks]"]
c.ExportPlugin.to = str(course / "grades.csv")  # the default is the current folder, which is the repository

# Every other file beside a notebook is copied to the students, and copied over the student's own at
# grading. So the scripts stay behind.
c.CourseDirectory.ignore = ["*.py", "*.pyc", "__pycache__", ".ipynb_checkpoints", ".DS_Store"]

# What an instructor's trial of a notebook wrote, such as predictions, would replace every student's. It
# cannot be ignored by name: that would leave the students' own files out of the grading as well.
written = ("predictions.json", "report.html", "train.txt", "loader.txt", "my_model.py")
stray = sorted(path for name in written for path in repository.glob(f"solutions/*/{name}"))
if stray:
    raise SystemExit(
        f"What notebooks write belongs to students, and {stray[0].relative_to(repository)} would replace "
        "theirs. Delete it, and try notebooks in a copy."
    )
