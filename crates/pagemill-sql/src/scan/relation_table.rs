//! A relation as a table of the query engine: its columns, and an estimate of its rows.
//!
//! Invariant: opening reads catalogs only; no page of the table is read before the query runs.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Column, Result as QueryResult, Statistics, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, TableType};
use datafusion::physical_plan::ExecutionPlan;
use pagemill_cluster::{ClassRow, Generated, Relation, RelationKind};
use pagemill_engine::{DamageLog, OnDamage, Table};
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::ScanContext;
use super::source::{BLOCK_BYTES, RelationSource};
use super::statistics::statistics;
use super::system_columns::{SYSTEM_COLUMNS, SystemColumn};
use crate::bind::{Bound, BoundColumn, TableRows};
use crate::coerce::{carrier_of, collated};
use crate::error::{Result, SqlState, fail, unsupported};
use crate::typed::{ColumnOrigin, Typed};
use crate::types::PgType;

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct TableColumn {
    /// Its name as stored.
    pub(crate) stored_name: Box<[u8]>,
    pub(crate) name: String,
    pub(crate) ty: PgType,
    pub(crate) carrier: DataType,
    /// Of one that is not stored as a value.
    pub(crate) system: Option<SystemColumn>,
    /// Its number in the relation.
    pub(crate) number: i16,
}

/// A table, materialized view, sequence or partitioned table.
#[derive(Debug)]
pub(crate) struct RelationTable {
    pub(crate) context: Arc<ScanContext>,
    pub(crate) named: Relation,
    /// The relations that hold the rows, each with its blocks.
    pub(crate) parts: Vec<(Arc<Table>, u64)>,
    /// Its own columns, and behind them those of the system.
    pub(crate) columns: Vec<TableColumn>,
    pub(crate) schema: SchemaRef,
}

impl RelationTable {
    /// Opens the files of a relation.
    pub(crate) fn open(context: &Arc<ScanContext>, class: &ClassRow) -> Result<Self> {
        refuse_kind(class)?;
        let catalog = &context.catalog;
        let database = catalog.database();
        let named = database.relation(class)?;
        let parts = match class.kind {
            RelationKind::PartitionedTable => {
                database.relations(&database.leaf_partitions(class)?.leaves)?
            }
            _ => vec![named.clone()],
        };
        let mut damage = DamageLog::new(OnDamage::Stop);
        let open = |part: Relation| {
            let table = Arc::new(Table::open(database, part, &mut damage)?);
            let blocks = u64::from(table.blocks());
            Ok((table, blocks))
        };
        let parts = parts.into_iter().map(open).collect::<Result<Vec<_>>>()?;
        let columns = columns(context, &named);
        let schema = schema_of(&columns);
        Ok(Self { context: context.clone(), named, parts, columns, schema })
    }

    /// True for a table whose rows are in partitions.
    pub(super) fn is_partitioned(&self) -> bool {
        self.named.class.kind == RelationKind::PartitionedTable
    }

    /// What it has on disk, its partitions included.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(|(_, blocks)| blocks * BLOCK_BYTES).sum()
    }

    /// The numbers of columns that no row has a value of.
    fn virtual_columns(&self) -> Vec<i16> {
        let columns = (1..).zip(&self.named.columns);
        let computed = columns.filter(|(_, column)| column.generated == Generated::Virtual);
        computed.map(|(number, _)| number).collect()
    }

    /// A scan under a name.
    pub(crate) fn bound(mut self, alias: &str) -> Result<TableRows> {
        let relation = TableReference::bare(alias);
        let mut columns = Vec::with_capacity(self.columns.len());
        let own = self.columns.iter().filter(|column| column.system.is_none()).count();
        for column in &mut self.columns {
            let in_plan = name_in_plans(&column.name, alias);
            let expr = Expr::Column(Column::new(Some(relation.clone()), &in_plan));
            let mut typed = Typed::new(expr, column.ty, column.carrier.clone());
            let (relation, number) = (self.named.class.oid, column.number);
            typed.origin = Some(ColumnOrigin { relation, number });
            let name = std::mem::replace(&mut column.name, in_plan);
            columns.push(BoundColumn { name, typed });
        }
        self.schema = schema_of(&self.columns);
        let computed = self.virtual_columns();
        let source = provider_as_source(Arc::new(self));
        let plan = LogicalPlanBuilder::scan(relation.clone(), source, None)?.build()?;
        let mut system = columns.split_off(own);
        // How values are stored is no column that has a name in statements.
        system.truncate(SYSTEM_COLUMNS.len());
        Ok(TableRows { bound: Bound { plan, columns }, system, computed })
    }
}

fn schema_of(columns: &[TableColumn]) -> SchemaRef {
    let field = |column: &TableColumn| Field::new(&column.name, column.carrier.clone(), true);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// What a column of a scan is called. The engine finds columns by their bare names where it hands conditions down, so that two
/// scans of a statement must have none in common; those of the first keep theirs.
fn name_in_plans(column: &str, alias: &str) -> String {
    match alias.rsplit_once('#') {
        Some((_, number)) if number != "1" || column.contains('#') => format!("{column}#{number}"),
        _ => column.to_owned(),
    }
}

/// Behind the name of a column in that of how its values are stored. No name has a zero byte.
const AS_STORED: &str = " as stored\0";

/// The column of a scan that tells how the values of another column, of this name in its table, are stored.
pub(crate) fn stored_form(column: &Column, name: &str) -> Option<Column> {
    let relation = column.relation.clone()?;
    let name = name_in_plans(&format!("{name}{AS_STORED}"), relation.table());
    Some(Column::new(Some(relation), name))
}

/// The name of the column whose values another tells the form of.
pub(super) fn stored_name(of_form: &TableColumn) -> &[u8] {
    of_form.stored_name.strip_suffix(AS_STORED.as_bytes()).unwrap_or_default()
}

fn refuse_kind(class: &ClassRow) -> Result<()> {
    let name = String::from_utf8_lossy(&class.name);
    match class.kind {
        RelationKind::View => {
            unsupported(format!("the view \"{name}\", whose query is a stored tree,"))
        }
        RelationKind::ForeignTable => unsupported(format!("the foreign table \"{name}\"")),
        RelationKind::Index | RelationKind::PartitionedIndex => {
            fail(SqlState("42809"), format!("cannot open relation \"{name}\": it is an index"))
        }
        RelationKind::CompositeType => fail(
            SqlState("42809"),
            format!("cannot open relation \"{name}\": it is a composite type"),
        ),
        _ => Ok(()),
    }
}

fn columns(context: &ScanContext, relation: &Relation) -> Vec<TableColumn> {
    let column = |(number, column): (i16, &pagemill_cluster::Column)| {
        let mut ty =
            collated(&context.catalog, column.type_oid).with_modifier(column.type_modifier);
        if ty.collation != Oid(0) {
            ty.collation = context.catalog.column_collation(relation.class.oid, &column.name);
        }
        if context.has_wide_numerics && ty.oid == oid::NUMERIC {
            ty.modifier = -1;
        }
        let carrier = carrier_of(&context.catalog, ty);
        let name = column.display_name();
        let stored_name = column.name.clone();
        TableColumn { stored_name, name, ty, carrier, system: None, number }
    };
    let system = |column: SystemColumn| {
        let (name, ty) = (column.name(), PgType::new(column.type_oid()));
        let carrier = carrier_of(&context.catalog, ty);
        let stored_name = name.as_bytes().into();
        let (name, number) = (name.to_owned(), column.number());
        TableColumn { stored_name, name, ty, carrier, system: Some(column), number }
    };
    let own = (1..).zip(&relation.columns).filter(|(_, column)| !column.dropped).map(column);
    let stored =
        relation.columns.iter().filter(|column| !column.dropped && column.layout.len == -1);
    let stored = stored.map(|column| {
        let stored_name = [&*column.name, AS_STORED.as_bytes()].concat().into();
        let name = format!("{}{AS_STORED}", column.display_name());
        TableColumn { stored_name, name, ..system(SystemColumn::StoredForm) }
    });
    own.chain(SYSTEM_COLUMNS.into_iter().map(&system)).chain(stored).collect()
}

#[async_trait]
impl TableProvider for RelationTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(statistics(self))
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        RelationSource::scan(self, projection, limit)
    }
}
