"""What a page asks of the outside, and what a real browser finds wrong with it."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from urllib.parse import quote

CHROMIUM = shutil.which("chromium")
VOID = {"meta", "link", "path", "rect", "circle", "line", "br", "img"}

# Asked once everything has loaded or failed to; what was requested is not known before.
PROBE = """<script>
window.addEventListener('load', () => {
const wide = document.documentElement.scrollWidth > window.innerWidth;
const pictures = [...document.querySelectorAll('svg, img')];
const heights = pictures.map(s => s.getBoundingClientRect().height);
const entries = performance.getEntriesByType('resource').map(r => r.name);
const asked = entries.filter(name => !name.startsWith('data:'));
document.title = ['probe', wide, heights.filter(h => h < 50).length, asked.length].join(' ');
});
</script></body>"""


class Balance(HTMLParser):
    """Complains about tags that are not closed in order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def unclosed_tags(text):
    """Tags left open at the end; one closed out of order is an error."""
    parser = Balance()
    parser.feed(text)
    return parser.open


def outside_requests(text):
    """Everything in a page that would make a browser ask a server."""
    urls = re.findall(r"""(?:src|href|action)\s*=\s*["']?([^"'\s>]+)|url\(([^)]*)\)""", text)
    found = [a or b for a, b in urls if not (a or b).startswith(("data:", "#"))]
    return [*found, *re.findall(r"@import|<script", text)]


def complaints(text, folder, *, width=1100, dark=False):
    """What a browser finds wrong; the script that asks it is not part of the page."""
    (folder / "page.html").write_text(text.replace("</body>", PROBE), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
    options += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    options += [f"--window-size={width},900", f"--user-data-dir={folder}/profile", "--dump-dom"]
    options += ["--blink-settings=preferredColorScheme=0"] if dark else []
    done = subprocess.run(
        [CHROMIUM, *options, "file://" + quote(str(folder / "page.html"))],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    found = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    title = re.search("<title>(probe.*?)</title>", done.stdout)
    return found if title and title[1] == "probe false 0 0" else [*found, title and title[1]]
