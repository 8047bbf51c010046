"""What SQLAlchemy's inspector sees of a schema and its tables, as lines of text.

Where the server is, libpq finds in its environment.
Invariant: what the inspector gives in no order is printed sorted.
"""

import sqlalchemy


def show(name, found):
    print("==", name)
    for one in found if isinstance(found, list) else [found]:
        print(one)


def by_name(found):
    return sorted(found, key=lambda one: str(one.get("name")))


engine = sqlalchemy.create_engine("postgresql+psycopg2://")
inspector = sqlalchemy.inspect(engine)
show("dialect", [engine.dialect.server_version_info[0], inspector.default_schema_name])
show("schemas", sorted(inspector.get_schema_names()))
show("enums", by_name(inspector.get_enums("shop")))
show("sequences", sorted(inspector.get_sequence_names("shop")))
views = sorted(inspector.get_view_names("shop"))
for view in views:
    show(f"definition of {view}", inspector.get_view_definition(view, "shop"))
for table in sorted(inspector.get_table_names("shop")) + views:
    show(f"columns of {table}", inspector.get_columns(table, "shop"))
    show(f"key of {table}", inspector.get_pk_constraint(table, "shop"))
    show(f"foreign keys of {table}", by_name(inspector.get_foreign_keys(table, "shop")))
    show(f"indexes of {table}", by_name(inspector.get_indexes(table, "shop")))
    show(f"unique of {table}", by_name(inspector.get_unique_constraints(table, "shop")))
    show(f"checks of {table}", by_name(inspector.get_check_constraints(table, "shop")))
    show(f"comment of {table}", inspector.get_table_comment(table, "shop"))

metadata = sqlalchemy.MetaData(schema="shop")
with engine.connect() as connection:
    metadata.reflect(connection, only=["customers", "orders"])
    customers, orders = metadata.tables["shop.customers"], metadata.tables["shop.orders"]
    joined = sqlalchemy.select(customers.c.name, sqlalchemy.func.sum(orders.c.total)).join(orders).group_by(customers.c.name)
    show("joined by what was seen", [tuple(row) for row in connection.execute(joined.order_by(customers.c.name).limit(5))])
