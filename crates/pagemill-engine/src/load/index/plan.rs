//! The indexes of a load: how their entries are formed and ordered.
//!
//! Invariant: a plan exists only for an index whose order is known here to be that of the server.
//!
//! Source: `src/include/catalog/pg_opclass.dat`, PostgreSQL 14 to 18.

use pagemill_cluster::collations::Collation;
use pagemill_cluster::insert_rules::{IndexDefinition, KeyColumn as DefinedColumn};
use pagemill_cluster::{ClassRow, Database, Relation};
use pagemill_format::btree_builder::BtreeOptions;
use pagemill_format::index_tuple_builder::IndexForm;
use pagemill_format::tuple::AttributeLayout;
use pagemill_format::tuple_data_builder::{AttributeStorage, ColumnLayout};
use pagemill_format::{Oid, PgVersion};
use pagemill_sys::LocaleCollation;
use pagemill_types::builtin::oid::{ANYARRAY, ANYENUM, ANYMULTIRANGE, ANYRANGE, INT4, OID, RECORD};
use pagemill_types::index_key_order::{KeyColumn, KeyOrder};
use pagemill_types::order::{TextCollation, ValueOrder};

use crate::error::{Error, Result};
use crate::load::table_plan::column_layout;
use crate::refusal::LoadRefusal;

/// One index.
#[derive(Debug)]
pub(in crate::load) struct IndexPlan {
    pub(in crate::load) class: ClassRow,
    pub(in crate::load) order: KeyOrder,
    pub(in crate::load) unique: bool,
    pub(in crate::load) immediate: bool,
    pub(in crate::load) nulls_not_distinct: bool,
    /// The table's columns, from 0, that its columns are.
    pub(in crate::load) positions: Vec<usize>,
    pub(in crate::load) layouts: Vec<ColumnLayout>,
    /// The names and types of the key columns, for messages.
    pub(in crate::load) key_names: Vec<String>,
    pub(in crate::load) key_types: Vec<Oid>,
    fillfactor: u8,
    deduplicate: bool,
    is_of_system_in_14: bool,
    key_count: usize,
}

impl IndexPlan {
    /// The plan for an index of a table.
    ///
    /// # Errors
    /// When the order of its keys is not known here.
    pub(in crate::load) fn new(
        database: &Database,
        definition: &IndexDefinition,
        table: &Relation,
    ) -> Result<Self> {
        let columns = database.relation(&definition.class)?.columns;
        let unset = database.default_toast_compression()?;
        let layouts: Vec<_> =
            columns.iter().map(|column| column_layout(column, unset)).collect::<Result<_>>()?;
        let keys = definition.keys.iter().zip(&layouts).map(|(key, layout)| {
            let of = table.columns.get(key.position).map_or(Oid::INVALID, |column| column.type_oid);
            Ok(KeyColumn {
                layout: layout.layout,
                order: value_order(database, definition, key, of)?,
                descending: key.descending,
                nulls_first: key.nulls_first,
            })
        });
        let positions = definition.keys.iter().map(|key| key.position);
        let key_columns =
            || definition.keys.iter().filter_map(|key| table.columns.get(key.position));
        Ok(Self {
            class: definition.class.clone(),
            order: KeyOrder::new(keys.collect::<Result<_>>()?),
            unique: definition.unique,
            immediate: definition.immediate,
            nulls_not_distinct: definition.nulls_not_distinct,
            positions: positions.chain(definition.included.iter().copied()).collect(),
            layouts,
            key_names: key_columns().map(|column| column.display_name()).collect(),
            key_types: key_columns().map(|column| column.type_oid).collect(),
            fillfactor: definition.fillfactor,
            deduplicate: definition.deduplicate,
            is_of_system_in_14: false,
            key_count: definition.keys.len(),
        })
    }

    /// The index of a TOAST table: `chunk_id` and `chunk_seq`, unique.
    ///
    /// # Errors
    /// Never, as both have an order.
    pub(in crate::load) fn of_toast(class: &ClassRow, version: PgVersion) -> Result<Self> {
        let layout = AttributeLayout { len: 4, align: 4 };
        let key = |oid| {
            let order = ValueOrder::of_type(oid, &TextCollation::C);
            let order = order.expect("oid and int4 have an order"); // infallible: both are built in
            KeyColumn { layout, order, descending: false, nulls_first: false }
        };
        let column = ColumnLayout {
            layout,
            storage: AttributeStorage::Plain,
            compression: pagemill_format::varlena::Compression::Pglz,
            dropped: false,
        };
        Ok(Self {
            class: class.clone(),
            order: KeyOrder::new([OID, INT4].into_iter().map(key).collect()),
            unique: true,
            immediate: true,
            nulls_not_distinct: false,
            positions: vec![0, 1],
            layouts: vec![column, column],
            key_names: vec!["chunk_id".into(), "chunk_seq".into()],
            key_types: vec![OID, INT4],
            fillfactor: pagemill_format::btree_builder::BTREE_DEFAULT_FILLFACTOR,
            deduplicate: false,
            is_of_system_in_14: version == PgVersion::V14,
            key_count: 2,
        })
    }

    /// Its name, for messages.
    pub(in crate::load) fn name(&self) -> String {
        String::from_utf8_lossy(&self.class.name).into_owned()
    }

    /// What forms its entries.
    ///
    /// # Errors
    /// For more columns than an index can have.
    pub(in crate::load) fn form(&self) -> Result<IndexForm, pagemill_format::Error> {
        IndexForm::new(&self.name(), &self.layouts)
    }

    pub(in crate::load) fn options(&self) -> BtreeOptions {
        BtreeOptions {
            name: self.name(),
            fillfactor: self.fillfactor,
            has_included_columns: self.positions.len() > self.key_count,
            is_unique: self.unique,
            deduplicate_items: self.deduplicate,
            is_of_system_in_14: self.is_of_system_in_14,
        }
    }

    /// True for a column that is kept as a string ended by a zero: of a `name`, whose padding is left out.
    pub(in crate::load) fn is_unpadded(&self, column: usize) -> bool {
        self.layouts.get(column).is_some_and(|layout| layout.layout.len == -2)
    }
}

fn value_order(
    database: &Database,
    definition: &IndexDefinition,
    key: &DefinedColumn,
    column_type: Oid,
) -> Result<ValueOrder> {
    // The operator classes for LIKE compare bytes, whatever the collation.
    let by_bytes = key.operator_class.ends_with("_pattern_ops");
    let collation = if by_bytes { Some(&Collation::Bytes) } else { key.collation.as_ref() };
    let (index, class) = (definition.display_name(), &key.operator_class);
    if let Some(Collation::Libc(locale)) = collation {
        check_locale(&index, locale)?;
    }
    // Some are for many types, whose order is that of the column's own.
    let of = match key.operator_class_type {
        ANYENUM | ANYARRAY | ANYRANGE | ANYMULTIRANGE => column_type,
        RECORD if class == "record_ops" => column_type,
        one => one,
    };
    let unknown = |cause| {
        let (index, operator_class) = (index.clone(), class.clone());
        Error::refused(LoadRefusal::IndexOrder { index, operator_class, cause })
    };
    // Operator classes that are no type's default, but for bytes.
    if class == "record_image_ops" {
        return Err(unknown(None));
    }
    database.value_order(of, collation).map_err(|error| match error {
        pagemill_cluster::Error::Refused(cause) => unknown(Some(cause)),
        other => other.into(),
    })
}

fn check_locale(index: &str, locale: &str) -> Result<()> {
    LocaleCollation::new(locale.as_bytes()).map(drop).map_err(|error| {
        let (index, locale) = (index.to_owned(), locale.to_owned());
        Error::refused(LoadRefusal::IndexLocale { index, locale, error })
    })
}
