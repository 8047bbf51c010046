//! What is left of a run of the lab besides what was printed: results as JSON, tables as CSV and Markdown, the page.
//!
//! They are opened before the run, so that twenty minutes are not lost to a wrong path, and appear when they are whole.
//!
//! Invariant: without having been named, no file is replaced but a page that the lab made.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use pagemill_io::{Output, Storage};
use pagemill_lab::report;
use pagemill_lab::results::Results;

use crate::lab_arguments::LabArguments;

/// Where the page goes if nobody says otherwise.
const USUAL_PAGE: &str = "report.html";
/// Where in a page stands what made it, at the latest.
const HEAD: usize = 4096;

/// Writes results in one form.
type Form = fn(&Results, &mut dyn Write) -> report::Result<()>;

/// Documents to be written.
pub(crate) struct LabDocuments {
    open: Vec<(Output, Form)>,
    /// Where the page will be.
    pub(crate) page: Option<PathBuf>,
}

impl LabDocuments {
    /// Those that the flags ask for.
    pub(crate) fn open(arguments: &LabArguments) -> Result<Self> {
        let storage = Storage::real().untimed();
        let page = page(arguments)?;
        let forms: [(Option<&PathBuf>, Form); 4] = [
            (arguments.json.as_ref(), report::json),
            (arguments.csv.as_ref(), report::csv),
            (arguments.markdown.as_ref(), report::markdown),
            (page.as_ref(), report::html),
        ];
        let named = forms.into_iter().filter_map(|(path, form)| Some((path?, form)));
        let open = named.map(|(path, form)| Ok((output(&storage, path)?, form)));
        Ok(Self { open: open.collect::<Result<_>>()?, page })
    }

    /// Writes them.
    pub(crate) fn write(self, results: &Results) -> Result<()> {
        self.open
            .into_iter()
            .try_for_each(|(output, form)| finish(output, |bytes| form(results, bytes)))
    }
}

/// A file to be.
pub(crate) fn output(storage: &Storage, path: &Path) -> Result<Output> {
    Ok(Output::file(storage, path).map_err(pagemill_engine::Error::Output)?)
}

/// Makes a document in memory and gives its file the name.
pub(crate) fn finish(
    mut output: Output,
    form: impl FnOnce(&mut dyn Write) -> report::Result<()>,
) -> Result<()> {
    let mut bytes = Vec::new();
    form(&mut bytes)?;
    let written = output.write_all(&bytes).and_then(|()| output.finish());
    Ok(written.map_err(pagemill_engine::Error::Output)?)
}

/// Where the page goes, if it is wanted.
fn page(arguments: &LabArguments) -> Result<Option<PathBuf>> {
    if arguments.no_html {
        return Ok(None);
    }
    if arguments.html.is_some() {
        return Ok(arguments.html.clone());
    }
    let usual = PathBuf::from(USUAL_PAGE);
    if usual.exists() && !is_ours(&usual)? {
        bail!(
            "{USUAL_PAGE} is there and was not made by the lab: name another file with --html, or --no-html"
        );
    }
    Ok(Some(usual))
}

/// True for a page that says so.
fn is_ours(path: &Path) -> Result<bool> {
    use std::io::Read as _;
    let mut head = Vec::new();
    let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
    file.take(HEAD as u64).read_to_end(&mut head).with_context(|| path.display().to_string())?;
    let mark = format!("name=\"generator\" content=\"{}\"", report::GENERATOR);
    Ok(String::from_utf8_lossy(&head).contains(&mark))
}
