"""The built site is searched for links that lead nowhere."""

from tests.documents import load

PAGES = {
    "index.html": '<a id="top" href="#top"></a><a href="a/page.html#there"></a><img src="a/drawing.svg">',
    "a/page.html": '<h2 id="there"></h2><a href="../index.html"></a><a href="https://example.org/x"></a>',
    "a/drawing.svg": "<svg/>",
    "lite/index.html": '<a href="made-by-a-script.html"></a>',
}
DEAD = {
    '<a href="report.html"></a>': "index.html: report.html leads to no file",
    '<a href="a/page.html#gone"></a>': "index.html: a/page.html#gone leads to no place on a/page.html",
    '<img src="a">': "index.html: a leads to no file",
    '<img src="//a.org/x">': "index.html: //a.org/x is loaded from another site",
}


def write(folder, pages):
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def test_a_site_without_a_dead_link_passes(tmp_path, capsys):
    write(tmp_path, PAGES)
    assert load("check_links").main(str(tmp_path)) == 0
    assert capsys.readouterr().out == "Every link within the site leads somewhere.\n"


def test_each_dead_link_is_named_with_its_page(tmp_path, capsys):
    write(tmp_path, PAGES | {"index.html": PAGES["index.html"] + "".join(DEAD)})
    assert load("check_links").main(str(tmp_path)) == 1
    assert capsys.readouterr().out.splitlines() == list(DEAD.values())
