//! What is left of a run of the lab besides what was printed: results as JSON, tables as CSV and Markdown, the page.
//!
//! They are opened before the run, so that twenty minutes are not lost to a wrong path, and appear when they are whole.
//!
//! Invariants: no file is replaced without `--force`, and none that is read; no two documents share a file.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use pagemill_io::{Output, Storage};
use pagemill_lab::report;
use pagemill_lab::results::Results;

use crate::lab_arguments::LabArguments;
use crate::output_paths::refuse_in_any_cluster;

/// Where the page goes if nobody says otherwise.
const USUAL_PAGE: &str = "report.html";

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
        let usual = PathBuf::from(USUAL_PAGE);
        let page = arguments.html.clone().or((!arguments.no_html).then_some(usual));
        let forms: [(Option<&PathBuf>, Form); 4] = [
            (arguments.json.as_ref(), report::json),
            (arguments.csv.as_ref(), report::csv),
            (arguments.markdown.as_ref(), report::markdown),
            (page.as_ref(), report::html),
        ];
        let named = forms.into_iter().filter_map(|(path, form)| Some((path?.as_path(), form)));
        Ok(Self { open: new_outputs(&storage, named.collect(), arguments.force, &[])?, page })
    }

    /// Writes them.
    pub(crate) fn write(self, results: &Results) -> Result<()> {
        self.open
            .into_iter()
            .try_for_each(|(output, form)| finish(output, |bytes| form(results, bytes)))
    }
}

/// Files to be, each with what goes with it. Refuses files that exist, unless they may be replaced; those that are read, and
/// one file for two documents, in any case.
pub(crate) fn new_outputs<T>(
    storage: &Storage,
    named: Vec<(&Path, T)>,
    replace: bool,
    inputs: &[&Path],
) -> Result<Vec<(Output, T)>> {
    let mut taken: Vec<PathBuf> = inputs.iter().map(|path| resolved(path)).collect();
    for (path, _) in &named {
        refuse_in_any_cluster("the output", path)?;
        // Terminals, pipes and /dev/null are not replaced by being written to.
        let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
        if is_file && !replace {
            bail!("{} exists: {}", path.display(), remedy(path));
        }
        let resolved = resolved(path);
        if taken.contains(&resolved) && (is_file || !path.exists()) {
            bail!("{} is named twice: name another file", path.display());
        }
        taken.push(resolved);
    }
    let opened = named.into_iter().map(|(path, with)| {
        let output = Output::file(&storage.host(), path).map_err(pagemill_engine::Error::Output)?;
        Ok((output, with))
    });
    opened.collect()
}

fn remedy(path: &Path) -> &'static str {
    if path == Path::new(USUAL_PAGE) {
        "name another file with --html, replace it with --force, or write no page with --no-html"
    } else {
        "name another file, or replace it with --force"
    }
}

/// The path with its directory resolved, so that two ways to one file are seen to be one.
fn resolved(path: &Path) -> PathBuf {
    let whole = std::fs::canonicalize(path);
    whole.or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
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
