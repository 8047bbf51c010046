//! The frame of a page: its head with style and policy, the marks that charts use, the table of contents, the script.
//!
//! Invariant: the policy allows the style and the script within the page and nothing else; the script only sorts tables and
//! opens and closes folds, so that without it everything is there.

use super::markup::Markup;
use crate::report::GENERATOR;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// The shapes of the points of up to eight series.
const MARKS: &str = concat!(
    "<svg width=\"0\" height=\"0\" class=\"marks\" aria-hidden=\"true\"><defs>",
    "<circle id=\"m0\" r=\"4\"/>",
    "<path id=\"m1\" d=\"M-3.7-3.7h7.4v7.4h-7.4z\"/>",
    "<path id=\"m2\" d=\"M0-5 4.8 3.5h-9.6z\"/>",
    "<path id=\"m3\" d=\"M0-5.2 5.2 0 0 5.2-5.2 0z\"/>",
    "<path id=\"m4\" d=\"M0 5-4.8-3.5h9.6z\"/>",
    "<path id=\"m5\" d=\"M-1.6-5h3.2v3.4H5v3.2H1.6V5h-3.2V1.6H-5v-3.2h3.4z\"/>",
    "<path id=\"m6\" d=\"M-5 0a5 5 0 0 1 10 0z\"/>",
    "<path id=\"m7\" d=\"M-5-2h10v4h-10z\"/>",
    "<pattern id=\"hatch\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">",
    "<path d=\"M0 0v5\" class=\"hatch\"/></pattern>",
    "</defs></svg>\n",
);

/// A whole page around what `body` writes.
pub(in crate::report) fn document(page: &mut Markup, title: &str, body: impl FnOnce(&mut Markup)) {
    page.raw("<!DOCTYPE html>\n");
    page.tag("html", &[("lang", "en")], |page| {
        page.tag("head", &[], |page| head(page, title));
        page.tag("body", &[], |page| {
            page.leaf("a", &[("class", "skip"), ("href", "#summary")], "Skip to what to know");
            page.raw(MARKS);
            page.tag("div", &[("class", "page")], body);
            page.raw("<script>/*<![CDATA[*/\n");
            page.raw(SCRIPT);
            page.raw("/*]]>*/</script>\n");
        });
    });
    page.text("\n");
}

fn head(page: &mut Markup, title: &str) {
    page.empty("meta", &[("charset", "utf-8")]);
    page.empty("meta", &[("name", "generator"), ("content", GENERATOR)]);
    page.empty("meta", &[("http-equiv", "Content-Security-Policy"), ("content", POLICY)]);
    page.empty("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    page.empty("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    page.empty("link", &[("rel", "icon"), ("href", "data:,")]);
    page.leaf("title", &[], title);
    page.raw("<style>/*<![CDATA[*/\n");
    page.raw(STYLE);
    page.raw("/*]]>*/</style>\n");
}

/// The table of contents: target, text and depth of each entry.
pub(in crate::report) fn contents(page: &mut Markup, entries: &[(String, String, usize)]) {
    page.tag("nav", &[("class", "contents"), ("aria-label", "Contents")], |page| {
        page.tag("details", &[("open", "open"), ("data-fold", "phone")], |page| {
            page.leaf("summary", &[], "Contents");
            page.tag("ul", &[], |page| {
                for (target, text, depth) in entries {
                    let class = if *depth == 0 { "part" } else { "group" };
                    page.tag("li", &[("class", class)], |page| {
                        page.leaf("a", &[("href", &format!("#{target}"))], text);
                    });
                }
            });
        });
    });
}

/// Something long, folded away until it is wanted, also on paper.
pub(in crate::report) fn fold(page: &mut Markup, title: &str, inside: impl FnOnce(&mut Markup)) {
    page.tag("details", &[("class", "fold")], |page| {
        page.leaf("summary", &[], title);
        inside(page);
    });
}
