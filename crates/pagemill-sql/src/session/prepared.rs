//! Statements that run again: prepared once and run with values later, or sent as texts that differ in their constants.
//!
//! ```text
//! prepared ──────────────── Prepared ──────┐
//! a text like one before ── its constants ─┴─► a plan that is kept ─┬► run with values
//!                                              none, or an error ───┴► bound and planned as it stands
//! ```
//!
//! Invariant: what runs by a plan that was kept gives what the statement would give with its values written into it.

use std::sync::{Arc, Mutex, PoisonError};

use pagemill_engine::Progress;
use pagemill_format::Oid;
use sqlparser::ast::{DescribeAlias, Query, Statement};

use super::answer::columns;
use super::engine::is_shared;
use super::explain::Explained;
use super::parsing::refuse;
use super::{AnswerColumn, Session};
use crate::error::Result;
use crate::generic_plan::{GenericPlan, PlanCell, Planned, Sample};
use crate::in_order::in_order;
use crate::interruption::interruptible;
use crate::parameters::{ParameterValue, Parameters};
use crate::rows::Rows;
use crate::scan::{ScanContext, with_runtime_filters};
use crate::statement_texts::{Constant, Limits, Recent, Shape, StatementText};
use crate::types::PgType;

/// Plans of texts that a session keeps.
const LIMITS: Limits = Limits { entries: 200, bytes: 512 << 10 };

/// What is known of a statement before it has values.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The types of its parameters.
    pub types: Arc<[Oid]>,
    /// Its columns.
    pub columns: Arc<[AnswerColumn]>,
    /// Of a text of a shape, in the place of parameters behind those.
    constants: Arc<[Constant]>,
    plan: Arc<PlanCell>,
}

impl Prepared {
    /// A statement with these columns and no parameters, of which no plan is kept.
    pub fn of_columns(columns: impl Into<Arc<[AnswerColumn]>>) -> Self {
        Self::new(Arc::default(), columns.into())
    }

    /// The same with parameters of these types.
    #[must_use]
    pub fn with_types(self, types: impl Into<Arc<[Oid]>>) -> Self {
        Self { types: types.into(), ..self }
    }

    #[cfg(test)]
    pub(crate) fn plan(&self) -> &PlanCell {
        &self.plan
    }

    fn new(types: Arc<[Oid]>, columns: Arc<[AnswerColumn]>) -> Self {
        Self { types, columns, constants: Arc::default(), plan: Arc::default() }
    }
}

/// Plans of the shapes of texts.
#[derive(Debug)]
pub(super) struct ShapePlans(Mutex<Recent<ShapeKey, Arc<PlanCell>>>);

/// A shape by its number, and the types that a client gave the parameters.
type ShapeKey = (u64, Box<[Oid]>);

impl Default for ShapePlans {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(LIMITS)))
    }
}

impl ShapePlans {
    /// The one for these types.
    fn of(&self, shape: &Shape, types: &[Oid]) -> Arc<PlanCell> {
        let key = (shape.number, Box::from(types));
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = plans.get(&key) {
            return known.clone();
        }
        let made = Arc::new(PlanCell::of_repeated());
        plans.insert(key, made.clone(), size_of_val(types));
        made
    }
}

impl Session {
    /// What a statement's parameters and columns are, those of `types` that are not 0 given.
    ///
    /// # Errors
    /// When it is wrong, changes something, or is not supported here.
    pub fn prepare(&self, text: &StatementText, types: &[Oid]) -> Result<Prepared> {
        let sought = Parameters::sought(types);
        let columns = match &**text.statement()? {
            Statement::Query(query) => {
                let scans = Arc::new(self.scans(&Progress::default()));
                let bound = self.bind((query, &sought), &scans, false);
                columns(match bound {
                    Err(error) if error.is_unsupported() => {
                        self.bind((query, &sought), &scans, true)?
                    }
                    bound => bound?,
                })
            }
            Statement::Explain {
                describe_alias: DescribeAlias::Explain, analyze, options, ..
            } => {
                vec![Explained::of(*analyze, options.as_deref())?.column()]
            }
            other => return refuse(other),
        };
        let prepared = Prepared::new(sought.types()?.into(), columns.into());
        let Some(repeated) = &text.repeated else { return Ok(prepared) };
        let plan = self.shape_plans.of(&repeated.shape, types);
        Ok(Prepared { constants: repeated.constants.clone(), plan, ..prepared })
    }

    /// The same of a text that is like one of which a plan is kept, and whose constants are values of their types; `None` for
    /// any other, which is to be prepared.
    pub fn prepared_before(&self, text: &StatementText, types: &[Oid]) -> Option<Prepared> {
        let repeated = text.repeated.as_ref()?;
        if types.len() > repeated.shape.parameters {
            return None;
        }
        let cell = self.shape_plans.of(&repeated.shape, types);
        let plan = cell.kept().filter(|plan| plan.is_of(&self.catalog, self.row_security))?;
        plan.constants(&repeated.constants).ok()?;
        let types = plan.types().iter().take(repeated.shape.parameters).map(|ty| ty.oid).collect();
        let (columns, constants) = (plan.columns().clone(), repeated.constants.clone());
        Some(Prepared { types, columns, constants, plan: cell })
    }

    /// Begins a statement that was sent as a text: by a plan that is kept where it is like one before it.
    ///
    /// # Errors
    /// As [`Self::start_with`].
    pub async fn start_text(&self, text: &StatementText, cancel: &Progress) -> Result<Rows> {
        let repeated = text.repeated.as_ref().filter(|repeated| repeated.shape.parameters == 0);
        let Some(repeated) = repeated else {
            return self.start(text.statement()?, cancel).await;
        };
        let prepared = Prepared {
            constants: repeated.constants.clone(),
            plan: self.shape_plans.of(&repeated.shape, &[]),
            ..Prepared::of_columns([])
        };
        self.execute((text, &prepared), &[], cancel).await
    }

    /// Begins a statement that was prepared, with values for its parameters. From its second run on by a plan that is kept,
    /// where that is no worse.
    ///
    /// # Errors
    /// As [`Self::start_with`].
    pub async fn execute(
        &self,
        (text, prepared): (&StatementText, &Prepared),
        values: &[ParameterValue],
        cancel: &Progress,
    ) -> Result<Rows> {
        if let Some(plan) = prepared.plan.plan(|| self.generic_plan(text, prepared)).await
            && plan.is_of(&self.catalog, self.row_security)
        {
            let scans = Arc::new(self.scans(cancel));
            match self.run_generic(plan, (values, &prepared.constants), scans).await {
                Ok(Some(rows)) => return Ok(rows),
                Ok(None) => {}
                // There is another plan for such rows.
                Err(error)
                    if error.is_no_decimal()
                        || error.is_of_memory()
                        || error.is_of_several_rows()
                        || error.is_of_values() => {}
                // The text itself says what is wrong with it, and where.
                Err(_) if text.repeated.is_some() => {}
                Err(error) => return Err(error),
            }
        }
        self.start_with(text.statement()?, values, cancel).await
    }

    async fn generic_plan(
        &self,
        text: &StatementText,
        prepared: &Prepared,
    ) -> Result<Option<GenericPlan>> {
        match &text.repeated {
            Some(repeated) => self.plan_of_shape(&repeated.shape, &prepared.types).await,
            None => {
                let Statement::Query(query) = &**text.statement()? else { return Ok(None) };
                let types: Vec<PgType> = prepared.types.iter().copied().map(PgType::new).collect();
                self.plan_for_any(query, types, None).await
            }
        }
    }

    /// The plan for all texts of a shape, in which the constants get the types that the statement gives them.
    async fn plan_of_shape(&self, shape: &Shape, types: &[Oid]) -> Result<Option<GenericPlan>> {
        let (Statement::Query(query), Statement::Query(sample)) =
            (&*shape.statement, &*shape.sample.0)
        else {
            return Ok(None);
        };
        let mut given = types.to_vec();
        given.resize(shape.parameters, Oid(0));
        given.extend(shape.types.iter().map(|ty| ty.pg_type().oid));
        let sought = Parameters::sought(&given);
        let scans = Arc::new(self.scans(&Progress::default()));
        self.bind((query, &sought), &scans, false)?;
        let mut types: Vec<PgType> = sought.types()?.into_iter().map(PgType::new).collect();
        let constants = types[shape.parameters..].iter_mut().zip(&*shape.types);
        constants.for_each(|(ty, constant)| *ty = ty.with_modifier(constant.pg_type().modifier));
        let own = Parameters::Generic(types[..shape.parameters].to_vec());
        let bound = self.bind((sample, &own), &scans, false)?;
        let sample = Sample { plan: &bound.plan, constants: &shape.sample.1 };
        self.plan_for_any(query, types, Some(sample)).await
    }

    async fn plan_for_any(
        &self,
        query: &Query,
        types: Vec<PgType>,
        sample: Option<Sample<'_>>,
    ) -> Result<Option<GenericPlan>> {
        let parameters = Parameters::Generic(types.clone());
        let scans = Arc::new(self.scans(&Progress::default()));
        let bound = self.bind((query, &parameters), &scans, false)?;
        let mut state = self.context.state();
        if !is_shared(&bound.plan)? {
            scans.show_order();
            state.config_mut().options_mut().execution.target_partitions = 1;
        }
        let (catalog, plan, row_security) = (&self.catalog, &bound.plan, self.row_security);
        let columns = columns(bound.clone());
        GenericPlan::make(Planned { catalog, row_security, types, columns, plan, sample }, &state)
            .await
    }

    async fn run_generic(
        &self,
        generic: &GenericPlan,
        (values, constants): (&[ParameterValue], &[Constant]),
        scans: Arc<ScanContext>,
    ) -> Result<Option<Rows>> {
        let columns = generic.columns().clone();
        let Some(mut values) = generic.literals(values, constants.len())? else { return Ok(None) };
        values.extend(generic.constants(constants)?);
        if let Some(batches) = generic.rows_by_key(&values, &scans)? {
            return Ok(Some(Rows::of_batches(columns, batches, scans)));
        }
        #[cfg(feature = "workers")]
        if self.workers.known().is_some_and(|workers| workers.are_worth(generic.plan())) {
            return Ok(None);
        }
        let plan = generic.with_values(&values, &scans)?;
        let (plan, task) = match generic.hands_down() {
            true => with_runtime_filters(plan, &self.context.state())?,
            false => (plan, generic.task().clone()),
        };
        let plan = match generic.task().session_config().target_partitions() {
            1 => in_order(&plan)?,
            _ => plan,
        };
        let plan = interruptible(plan, &scans.progress)?;
        self.begin(columns, (plan, task), scans).await.map(Some)
    }
}
