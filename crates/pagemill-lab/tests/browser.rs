//! The page in a real browser: on a phone and on a desk, in light and in dark, with its script and without.
//!
//! A Chromium that is found on the machine, or is named by `PAGEMILL_BROWSER`, loads a copy of the page into frames of
//! the widths that matter and prints the document that comes out; a probe in the copy writes its findings into it. So
//! no driver is needed. Without a browser the test says that it was skipped.

mod fixture;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use pagemill_lab::report::{self, compare};

const NAMES: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chrome-headless-shell",
];

/// Looks at the page from inside: what is wider than the screen, what went wrong, which text is hard to read.
const PROBE: &str = r#"
<script>
window.faults = [];
window.addEventListener("error", function (event) { window.faults.push("error: " + event.message); });
document.addEventListener("securitypolicyviolation", function (event) { window.faults.push("policy: " + event.blockedURI); });
console.error = function (text) { window.faults.push("console: " + text); };
function light(color) {
  var parts = color.match(/[\d.]+/g).slice(0, 3).map(function (part) {
    var share = Number(part) / 255;
    return share > 0.03928 ? Math.pow((share + 0.055) / 1.055, 2.4) : share / 12.92;
  });
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}
function ground(element) {
  for (var at = element; at; at = at.parentElement) {
    var color = getComputedStyle(at).backgroundColor;
    if (color !== "rgba(0, 0, 0, 0)") return color;
  }
  return "rgb(255, 255, 255)";
}
function flames() {
  var graphs = document.querySelectorAll("figure.flame > svg");
  graphs.forEach(function (graph) {
    for (var at = graph; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    var whole = graph.getBoundingClientRect(), rows = {};
    Array.from(graph.children).forEach(function (frame) {
      var box = frame.querySelector("rect").getBoundingClientRect();
      if (box.left < whole.left - 1 || box.right > whole.right + 1 || box.bottom > whole.bottom + 1) window.faults.push("a frame outside of its graph");
      (rows[frame.getAttribute("y")] = rows[frame.getAttribute("y")] || []).push(box);
    });
    Object.values(rows).forEach(function (row) {
      row.sort(function (a, b) { return a.left - b.left; }).reduce(function (last, box) {
        if (box.left < last - 0.5) window.faults.push("frames over each other");
        return box.right;
      }, 0);
    });
    if (Object.keys(rows).length < 2) window.faults.push("a flame graph of one row");
  });
  window.flamesSeen = graphs.length;
}
window.look = function () {
  flames();
  var width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) window.faults.push("overflow: " + document.documentElement.scrollWidth);
  document.querySelectorAll("body *").forEach(function (element) {
    var box = element.getBoundingClientRect();
    var inside = element.closest(".scroll, .skip, .marks, svg");
    if (!inside && box.width > 0 && box.right > width + 0.5) window.faults.push("too wide: " + element.className + " " + box.right);
    var own = Array.from(element.childNodes).some(function (node) { return node.nodeType === 3 && node.data.trim(); });
    if (!own || box.width === 0 || element.closest("script, svg, .skip")) return;
    var a = light(getComputedStyle(element).color), b = light(ground(element));
    var contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) window.faults.push("contrast " + contrast.toFixed(2) + ": " + element.tagName + "." + element.className);
  });
  document.querySelectorAll("svg[aria-label]").forEach(function (svg) {
    if (svg.closest("details:not([open])")) return;
    if (svg.getBoundingClientRect().width < 60) window.faults.push("a picture too small to see: " + svg.getAttribute("aria-label"));
  });
};
</script>"#;

#[test]
fn the_page_fits_every_screen_and_breaks_nothing() {
    let Some(browser) = browser() else {
        eprintln!("SKIPPED: no Chromium here; install one, or name it in PAGEMILL_BROWSER");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (fixture::results(), fixture::other_results());
    let mut report = Vec::new();
    report::html(&first, &mut report).unwrap();
    let mut comparison = Vec::new();
    let run = |label, results| compare::Run { label, results };
    compare::html(&run("before", &first), &run("after <&>", &second), &mut comparison).unwrap();
    for page in [report, comparison] {
        let page = String::from_utf8(page).unwrap();
        for dark in [false, true] {
            let found = look(&browser, directory.path(), &page, dark);
            assert!(found.contains("looked at 6 frames"), "the browser did not finish: {found}");
            assert!(found.contains("no faults"), "dark: {dark}, {found}");
        }
    }
}

#[test]
fn the_probe_sees_what_is_wrong() {
    let Some(browser) = browser() else { return };
    let directory = tempfile::tempdir().unwrap();
    let broken = "<!DOCTYPE html><html><head></head><body><p style=\"width:2000px;color:#ccc\">wide and faint</p>\
                  <script>nowhere();</script></body></html>";
    let found = look(&browser, directory.path(), broken, false);
    for fault in ["overflow", "contrast", "nowhere"] {
        assert!(found.contains(fault), "{fault} was not seen: {found}");
    }
}

fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PAGEMILL_BROWSER") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let places =
        std::env::split_paths(&path).flat_map(|directory| NAMES.map(|name| directory.join(name)));
    places.into_iter().find(|path| path.is_file()).or_else(from_playwright)
}

/// Where `npx playwright install` puts its browsers.
fn from_playwright() -> Option<PathBuf> {
    let cache = Path::new(&std::env::var_os("HOME")?).join(".cache/ms-playwright");
    let binaries = [
        "chrome-linux/chrome",
        "chrome-linux/headless_shell",
        "chrome-headless-shell-linux64/chrome-headless-shell",
    ];
    let versions = std::fs::read_dir(cache).ok()?.filter_map(Result::ok);
    versions
        .flat_map(|version| binaries.map(|binary| version.path().join(binary)))
        .find(|path| path.is_file())
}

/// What the probe found in frames of three widths, each with the script of the page and without.
fn look(browser: &Path, directory: &Path, page: &str, dark: bool) -> String {
    let harness = directory.join("harness.html");
    std::fs::write(&harness, frames(page, dark)).unwrap();
    // 0 is dark and 1 is light.
    let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!dark));
    let profile = format!("--user-data-dir={}", directory.join("profile").display());
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .args([
            &scheme,
            &profile,
            "--window-size=1400,1000",
            "--virtual-time-budget=20000",
            "--dump-dom",
        ])
        .arg(format!("file://{}", harness.display()))
        .output()
        .unwrap();
    let document = String::from_utf8_lossy(&output.stdout);
    let found = document.split("<pre>").nth(1).and_then(|rest| rest.split("</pre>").next());
    found.map_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned(), str::to_owned)
}

/// A document with the page in frames. What is written into `srcdoc` has the origin of the frame's owner, which may
/// therefore ask it for its findings.
fn frames(page: &str, dark: bool) -> String {
    let probed = page.replacen("<head>", &format!("<head>{PROBE}"), 1);
    let still = match (probed.find("<script>/*<![CDATA["), probed.rfind("</script>")) {
        (Some(from), Some(to)) => {
            format!("{}{}", &probed[..from], &probed[to + "</script>".len()..])
        }
        _ => probed.clone(),
    };
    let mut frames = String::new();
    for width in [360, 768, 1280] {
        for text in [&probed, &still] {
            let escaped = text.replace('&', "&amp;").replace('"', "&quot;");
            write!(
                frames,
                "<iframe width=\"{width}\" height=\"900\" srcdoc=\"{escaped}\"></iframe>"
            )
            .unwrap();
        }
    }
    format!(
        "<!DOCTYPE html><html><body>{frames}<pre>not finished</pre><script>
        window.addEventListener('load', function () {{
          var faults = [], frames = Array.from(document.querySelectorAll('iframe'));
          frames.forEach(function (frame) {{
            var inner = frame.contentWindow;
            if (inner.matchMedia('(prefers-color-scheme: dark)').matches !== {dark}) inner.faults.push('wrong scheme');
            if (inner.innerWidth !== Number(frame.width)) inner.faults.push('wrong width');
            inner.look();
            inner.faults.forEach(function (fault) {{ faults.push(frame.width + ': ' + fault); }});
          }});
          var text = faults.length === 0 ? 'no faults' : faults.slice(0, 20).join('; ');
          document.querySelector('pre').textContent = 'looked at ' + frames.length + ' frames: ' + text;
        }});
        </script></body></html>"
    )
}
