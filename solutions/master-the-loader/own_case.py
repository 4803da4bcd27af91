# %% [markdown]
# # Your own case
#
# Your course has given you a number, and the clinic has a training script for it, which nobody else in your course has. **Which
# lines starve it?** You need about MINUTES minutes.

# %% role="setup" id="setup-own-case"
from starvelab.checks import Credit
from starvelab.lesson.course.practice import own_case

# %%
own_case(1)  # put your own number here

# %% [markdown]
# ## Exercise: cure it (10 points, in parts)
#
# Behind a line stands the name by which it is changed. Name as many lines as the case says, and what binds first. Your points are
# the share of the lost throughput that these changes win back.

# %% role="answer" id="my-cure"
def my_cure():
    """Your number [int], and the names of the lines that you change [list of str]."""
    ### BEGIN SOLUTION
    return 1, ["images", "autocast"]
    ### END SOLUTION

# %% role="test" id="my-cure-test" points=10
def mine():
    answer = my_cure()
    if not (isinstance(answer, tuple | list) and len(answer) == 2):
        raise AssertionError(f"Return two values, first your number: return 1, names. Got {answer!r:.60}.")
    return own_case(answer[0]), answer[1]


def known():
    case, names = mine()
    case.evidence(*names)


def won_back():
    case, names = mine()
    return case.cure(*names).score


credit = Credit(10)
credit.part(2, "lines of your case", known)
### BEGIN HIDDEN TESTS
credit.share(8, "what your changes win back", won_back)
### END HIDDEN TESTS
credit.total()
