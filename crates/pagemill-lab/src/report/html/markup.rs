//! A writer of elements: what it opens it closes, what it is given it escapes.
//!
//! Invariants: the output is well-formed XML and means the same to an HTML parser: only void elements of HTML and
//! elements of SVG are written without an end tag; characters that XML forbids become U+FFFD. Element and attribute
//! names come from this crate, never from results.

/// A page being written.
#[derive(Debug, Default)]
pub(in crate::report) struct Markup {
    out: String,
}

/// Attributes of an element.
pub(in crate::report) type Attributes<'a> = &'a [(&'a str, &'a str)];

impl Markup {
    /// An element with what `inside` writes.
    pub(in crate::report) fn tag(
        &mut self,
        name: &str,
        attributes: Attributes<'_>,
        inside: impl FnOnce(&mut Self),
    ) {
        self.start(name, attributes);
        self.out.push('>');
        inside(self);
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
        if is_block(name) {
            self.out.push('\n');
        }
    }

    /// An element with a text.
    pub(in crate::report) fn leaf(&mut self, name: &str, attributes: Attributes<'_>, text: &str) {
        self.tag(name, attributes, |page| page.text(text));
    }

    /// An element without content: a void one of HTML, or one of SVG.
    pub(in crate::report) fn empty(&mut self, name: &str, attributes: Attributes<'_>) {
        self.start(name, attributes);
        self.out.push_str("/>");
    }

    /// Text, escaped.
    pub(in crate::report) fn text(&mut self, text: &str) {
        escape(text, &mut self.out);
    }

    /// Markup of this crate's own, as it is.
    pub(in crate::report) fn raw(&mut self, own: &'static str) {
        self.out.push_str(own);
    }

    /// The page.
    pub(in crate::report) fn finish(self) -> String {
        self.out
    }

    fn start(&mut self, name: &str, attributes: Attributes<'_>) {
        self.out.push('<');
        self.out.push_str(name);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            escape(value, &mut self.out);
            self.out.push('"');
        }
    }
}

/// Elements after which a line may end without a blank showing on the page.
fn is_block(name: &str) -> bool {
    matches!(
        name,
        "p" | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "li"
            | "tr"
            | "section"
            | "div"
            | "figure"
            | "nav"
            | "head"
            | "svg"
            | "ol"
            | "ul"
    )
}

fn escape(text: &str, out: &mut String) {
    for ch in text.chars() {
        match ch {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(ch),
            // Overrides of the writing direction would reach beyond the name that holds them.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            ch if ch.is_control() => out.push('\u{fffd}'),
            ch => out.push(ch),
        }
    }
}

/// A share of the width in percent, for an attribute; whatever is no number is 0.
pub(in crate::report) fn percent(share: f64) -> String {
    format!("{}%", number(share * 100.0))
}

/// A coordinate with two decimals at most.
pub(in crate::report) fn number(value: f64) -> String {
    let value = if value.is_finite() { value.clamp(-1e6, 1e6) } else { 0.0 };
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_opened_is_closed_and_what_is_given_is_escaped() {
        let mut page = Markup::default();
        page.tag("i", &[("title", "a\"<&'")], |page| {
            page.text("<b>\u{0}\u{202e}");
            page.empty("br", &[]);
        });
        assert_eq!(
            page.finish(),
            "<i title=\"a&quot;&lt;&amp;&#39;\">&lt;b&gt;\u{fffd}\u{fffd}<br/></i>"
        );
    }

    #[test]
    fn coordinates_are_numbers_whatever_comes() {
        assert_eq!(
            (percent(0.5), percent(f64::NAN), percent(1.0 / 3.0)),
            ("50%".into(), "0%".into(), "33.33%".into())
        );
        assert_eq!((number(-0.001), number(f64::INFINITY)), ("0".into(), "0".into()));
    }
}
