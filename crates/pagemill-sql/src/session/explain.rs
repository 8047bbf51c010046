//! `EXPLAIN`: how a statement runs, as lines or as JSON, and with ANALYZE what it met.
//!
//! Behind the first step stand a cost, rows and a width, in the server's form: postgres_fdw takes them for its own plans. They come from the
//! sizes of tables and the statistics of the cluster. A cost is in pages read in order, as the server's with its default settings.
//!
//! Invariant: what is estimated is said as an estimate, and nothing is read for it.
//!
//! Source: `ParseExplainOptionList` in `src/backend/commands/explain_state.c` (`explain.c` until 17), `get_remote_estimate` in
//! `contrib/postgres_fdw/postgres_fdw.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, displayable};
use futures::StreamExt as _;
use pagemill_engine::Progress;
use pagemill_types::builtin::oid;
use serde_json::{Value as Json, json};
use sqlparser::ast::{Expr, Query, UtilityOption, Value};

#[cfg(feature = "workers")]
use super::on_workers;
use super::planning::{PLAN, rows_of};
use super::{AnswerColumn, Session};
use crate::admission::scanned_bytes;
use crate::error::{Result, SqlState, fail, unsupported};
use crate::parameters::Parameters;
use crate::rows::Rows;
use crate::scan::accounts;
use crate::types::PgType;
#[cfg(feature = "workers")]
use crate::workers::account_name;

/// Bytes of a page, of which one costs 1.
const PAGE: usize = 8192;
/// What a row costs.
const ROW_COST: f64 = 0.01;
/// Rows where nothing is known of them, and bytes of a value.
const ROWS: usize = 1000;
const VALUE_BYTES: usize = 32;

/// What EXPLAIN is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Explained {
    analyze: bool,
    costs: bool,
    is_json: bool,
}

impl Explained {
    /// By the words behind EXPLAIN.
    ///
    /// # Errors
    /// For an option that there is not, or a form that is not known here.
    pub(super) fn of(analyze: bool, options: Option<&[UtilityOption]>) -> Result<Self> {
        // They say more of what a server does, or nothing of what is done here.
        const OTHERS: [&str; 9] = [
            "buffers",
            "generic_plan",
            "memory",
            "serialize",
            "settings",
            "summary",
            "timing",
            "verbose",
            "wal",
        ];
        let mut asked = Self { analyze, costs: true, is_json: false };
        for option in options.into_iter().flatten() {
            let value = option.arg.as_ref().map(word);
            match option.name.value.to_lowercase().as_str() {
                "analyze" => asked.analyze = is_on(value.as_deref()),
                "costs" => asked.costs = is_on(value.as_deref()),
                "format" => match value.as_deref() {
                    Some("text") => asked.is_json = false,
                    Some("json") => asked.is_json = true,
                    form => {
                        let form = form.unwrap_or_default().to_uppercase(); // default: none is shown
                        return unsupported(format!("EXPLAIN in the form {form}"));
                    }
                },
                other if OTHERS.contains(&other) => {}
                other => {
                    let message = format!("unrecognized EXPLAIN option \"{other}\"");
                    return fail(SqlState::SYNTAX_ERROR, message);
                }
            }
        }
        Ok(asked)
    }

    /// The column that it gives.
    pub(super) fn column(self) -> AnswerColumn {
        AnswerColumn::computed(PLAN, PgType::new(if self.is_json { oid::JSON } else { oid::TEXT }))
    }
}

fn word(value: &Expr) -> String {
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => text.to_lowercase(),
            other => other.to_string().to_lowercase(),
        },
        other => other.to_string().to_lowercase(),
    }
}

fn is_on(value: Option<&str>) -> bool {
    !matches!(value, Some("off" | "false" | "0"))
}

impl Session {
    /// The plan as lines of text, or one document; with ANALYZE, after it has run.
    pub(super) async fn explain(
        &self,
        query: (&Query, &Parameters),
        asked: Explained,
        cancel: &Progress,
    ) -> Result<Rows> {
        let scans = self.scans(cancel);
        #[cfg(feature = "workers")]
        let scans = if asked.analyze { scans.with_account(account_name()) } else { scans };
        let scans = Arc::new(scans);
        let (_, plan, task) = self.planned(query, &scans).await?;
        if asked.analyze {
            let _turn = self.admit(&plan, &scans).await?;
            let mut stream = rows_of(&plan, task)?;
            while let Some(batch) = stream.next().await {
                batch?;
            }
            drop(stream);
            scans.quiet().await;
        }
        let mut met = if asked.analyze { accounts(&*plan) } else { Vec::new() };
        #[cfg(feature = "workers")]
        if let Some(together) = self.met_on_workers(&*plan, &scans).await {
            met = together;
        }
        met.extend(scans.notices());
        let column = asked.column();
        if asked.is_json {
            let mut told = json!({ "Plan": document(&plan, asked)? });
            if !met.is_empty() {
                told["Notes"] = json!(met);
            }
            let text = format!("{:#}", json!([told]));
            return Rows::of_lines(column, [&*text].into_iter(), scans);
        }
        let shown = shown(&plan, asked)?;
        let lines = shown.iter().map(String::as_str).chain(met.iter().map(String::as_str));
        Rows::of_lines(column, lines, scans)
    }
}

/// The steps, a line each.
fn shown(plan: &Arc<dyn ExecutionPlan>, asked: Explained) -> Result<Vec<String>> {
    let shown = match asked.analyze {
        true => DisplayableExecutionPlan::with_metrics(&**plan).indent(false).to_string(),
        false => displayable(&**plan).indent(false).to_string(),
    };
    #[cfg(feature = "workers")]
    let shown = on_workers::stages(&**plan).unwrap_or(shown); // default: it runs here
    let mut lines: Vec<String> = shown.lines().map(str::to_owned).collect();
    if asked.costs
        && let Some(first) = lines.first_mut()
    {
        let Estimate { cost, rows, width } = Estimate::of(plan)?;
        first.push_str(&format!("  (cost=0.00..{cost:.2} rows={rows} width={width})"));
    }
    Ok(lines)
}

/// What a step is expected to give.
struct Estimate {
    cost: f64,
    rows: usize,
    width: usize,
}

impl Estimate {
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Result<Self> {
        // Some steps know nothing of what they give.
        let known = StatisticsContext::new().compute(&**plan, &StatisticsArgs::new()).ok();
        let rows = known.and_then(|known| known.num_rows.get_value().copied()).unwrap_or(ROWS); // default: nothing is known
        let width = plan.schema().fields().iter().map(|field| width(field.data_type())).sum();
        let pages = scanned_bytes(plan)?.div_ceil(PAGE);
        Ok(Self { cost: pages as f64 + rows as f64 * ROW_COST, rows, width })
    }
}

fn width(carrier: &DataType) -> usize {
    carrier.primitive_width().unwrap_or(VALUE_BYTES) // default: it has no fixed width
}

/// A step and those below it.
fn document(plan: &Arc<dyn ExecutionPlan>, asked: Explained) -> Result<Json> {
    let line = match asked.analyze {
        true => DisplayableExecutionPlan::with_metrics(&**plan).one_line().to_string(),
        false => displayable(&**plan).one_line().to_string(),
    };
    let mut told = json!({ "Node Type": plan.name() });
    if asked.costs {
        let Estimate { cost, rows, width } = Estimate::of(plan)?;
        told["Startup Cost"] = json!(0.0);
        told["Total Cost"] = json!((cost * 100.0).round() / 100.0);
        told["Plan Rows"] = json!(rows);
        told["Plan Width"] = json!(width);
    }
    let detail = line.trim().strip_prefix(plan.name()).map(|rest| rest.trim_start_matches(": "));
    if let Some(detail) = detail.filter(|detail| !detail.is_empty()) {
        told["Detail"] = json!(detail);
    }
    let below = plan.children().into_iter().map(|child| document(child, asked));
    let below = below.collect::<Result<Vec<Json>>>()?;
    if !below.is_empty() {
        told["Plans"] = json!(below);
    }
    Ok(told)
}
