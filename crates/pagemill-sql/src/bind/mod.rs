//! From the text of a statement to a plan with PostgreSQL's meaning.
//!
//! ```text
//! text ── sqlparser ──► syntax ── Binder ──► LogicalPlan of DataFusion, every expression with its PostgreSQL type
//! ```
//!
//! The binder does what the server's parse analysis does: it finds what names mean (columns in scopes, tables and functions
//! in the catalogs), gives every expression a type by the server's rules, and refuses what has no meaning or none that is
//! known here. The query engine gets expressions that are typed to the end and names that are unique, so that none of its own
//! rules for names and types ever decides.
//!
//! Invariant: every column of a plan has a name of its own, `NAME#NUMBER`; what a user sees are the names beside it.

mod aggregation;
mod argument_forms;
mod arrays;
mod cases;
mod columns;
mod correlation;
mod defaults;
mod dependencies;
mod distinct_on;
mod document_rows;
mod expressions;
mod first_of_query;
mod frame_offsets;
mod from;
mod functions;
mod inheritance;
mod inlined_rows;
mod inlined_sets;
mod inlining;
mod json_aggregates;
mod json_behaviors;
mod json_clauses;
mod json_constructors;
mod json_output;
mod json_predicates;
mod json_queries;
mod json_tables;
mod keywords;
mod lateral;
mod literals;
mod memberships;
mod normal_forms;
mod ordered_sets;
mod outer_rows;
mod policies;
mod query;
mod query_options;
mod recursion;
mod recursion_rules;
mod row_memberships;
mod row_order;
mod row_values;
mod samples;
mod scope;
mod select;
mod server_facts;
mod session_settings;
mod set_calls;
mod set_operation;
mod stored_expressions;
mod subqueries;
mod table_names;
mod type_names;
mod views;
mod virtual_columns;
mod window_calls;
mod window_frames;
mod windows;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlan};
use pagemill_cluster::ClassRow;
use pagemill_format::Oid;
use sqlparser::ast::Query;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::nested::Nested;
use crate::parameters::Parameters;
use crate::session::{ServerFacts, SettingValues};
use crate::typed::Typed;

use inlining::BodyArguments;
use scope::Level;
pub(crate) use stored_expressions::{stored_condition, stored_expression};
pub(crate) use type_names::type_of_text;

/// A query that was bound.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub(crate) plan: LogicalPlan,
    pub(crate) columns: Vec<BoundColumn>,
}

/// A relation's rows.
#[derive(Debug, Clone)]
pub(crate) struct TableRows {
    pub(crate) bound: Bound,
    /// The columns that `*` does not show: `ctid`, `xmin` and their kin.
    pub(crate) system: Vec<BoundColumn>,
    /// The numbers of columns that are NULL here until they are computed of the others.
    pub(crate) computed: Vec<i16>,
}

impl From<Bound> for TableRows {
    fn from(bound: Bound) -> Self {
        Self { bound, system: Vec::new(), computed: Vec::new() }
    }
}

impl TableRows {
    fn all_columns(&self) -> impl Iterator<Item = &BoundColumn> {
        self.bound.columns.iter().chain(&self.system)
    }
}

/// A column of a query: the name that is shown, and the expression that gives its values.
#[derive(Debug, Clone)]
pub(crate) struct BoundColumn {
    pub(crate) name: String,
    pub(crate) typed: Typed,
}

/// Where the rows of tables come from.
pub(crate) trait Tables {
    /// A plan that scans a relation of a database, under this name.
    fn scan(&self, of: &Arc<Catalog>, class: &ClassRow, alias: &str) -> Result<TableRows>;

    /// A plan that scans the file of this name, if there is one.
    fn file(&self, name: &str, alias: &str) -> Result<Option<Bound>>;

    /// The catalogs of a database of a cluster; without a name, of the session's.
    fn database(&self, cluster: Option<&str>, name: &str) -> Result<Arc<Catalog>>;

    /// What queries within others run in.
    ///
    /// # Errors
    /// Where none can.
    fn nested(&self) -> Result<Arc<Nested>>;
}

/// Binds one statement.
pub(crate) struct Binder<'b> {
    catalog: Arc<Catalog>,
    tables: &'b dyn Tables,
    /// The queries around the place that is being bound, outermost first.
    levels: Vec<Level>,
    /// The tables of WITH that are in sight, innermost last.
    with: Vec<HashMap<String, Bound>>,
    /// How many names were made.
    names: usize,
    /// True for the next SELECT if it is a part of UNION and the like, where literals keep waiting for a type.
    keeps_literals: bool,
    /// True once FROM names the recursive query around it.
    names_itself: bool,
    /// True where a query that refers to the row around it is run for each, not made a join.
    nests: bool,
    /// The first column of the last `(SELECT * …)` that was bound as a value.
    star_name: Option<String>,
    /// How many views stand around the place that is being bound.
    views: usize,
    /// Whose rights count in the view that is being bound; `None` for the session's.
    reader: Option<Oid>,
    /// True in what was stored as a tree, whose names were found when it was made, in whatever schema.
    is_stored: bool,
    /// The tables whose policies are being bound, outermost first.
    guarded: Vec<Oid>,
    /// False where a policy that would leave out rows is an error instead.
    row_security: bool,
    /// The arguments of the function in SQL whose body is being bound.
    body: Option<Rc<BodyArguments>>,
    /// The functions in SQL around that place, outermost first.
    inlined: Vec<Oid>,
    /// How many queries around are out of sight: those around a function see its arguments, and it nothing of them.
    hidden: usize,
    /// What the session's client set, where there is one.
    session_settings: Option<&'b SettingValues>,
    /// What its server tells it, where there is one.
    server: Option<&'b ServerFacts>,
    /// When the statement began, for `now()`: microseconds from 2000-01-01 UTC.
    start: i64,
    parameters: &'b Parameters,
}

impl<'b> Binder<'b> {
    pub(crate) fn new(
        catalog: &Arc<Catalog>,
        tables: &'b dyn Tables,
        start: i64,
        parameters: &'b Parameters,
    ) -> Self {
        let catalog = catalog.clone();
        Self {
            catalog,
            tables,
            levels: Vec::new(),
            with: Vec::new(),
            names: 0,
            keeps_literals: false,
            names_itself: false,
            nests: false,
            star_name: None,
            views: 0,
            reader: None,
            is_stored: false,
            guarded: Vec::new(),
            row_security: true,
            body: None,
            inlined: Vec::new(),
            hidden: 0,
            session_settings: None,
            server: None,
            start,
            parameters,
        }
    }

    /// Queries that refer to the row around them are run for each, which any of them can be.
    pub(crate) fn nesting(mut self) -> Self {
        self.nests = true;
        self
    }

    /// Policies that would leave out rows are errors.
    pub(crate) fn without_row_security(mut self) -> Self {
        self.row_security = false;
        self
    }

    /// The session has these settings.
    pub(crate) fn with_session_settings(mut self, settings: &'b SettingValues) -> Self {
        self.session_settings = Some(settings);
        self
    }

    /// The session is one of a server.
    pub(crate) fn in_server(mut self, facts: &'b ServerFacts) -> Self {
        self.server = Some(facts);
        self
    }

    /// Binds a query.
    ///
    /// # Errors
    /// As PostgreSQL's parse analysis; for what is not supported here.
    pub(crate) fn statement(&mut self, query: &Query) -> Result<Bound> {
        self.query(query)
    }

    /// A name that no other column has.
    fn fresh(&mut self, name: &str) -> String {
        self.names += 1;
        format!("{name}#{}", self.names)
    }

    /// The expression under a name of its own, and a reference to it.
    fn named(&mut self, typed: &Typed, name: &str) -> (Expr, Typed) {
        let fresh = self.fresh(name);
        let aliased = typed.expr.clone().alias(&fresh);
        let mut column = typed.with_expr(Expr::Column(Column::new_unqualified(fresh)));
        column.origin = typed.origin;
        (aliased, column)
    }
}
