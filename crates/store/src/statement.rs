//! SQL statements and their registry.
//!
//! A [`Connection`](super::connection::Connection) and its transactions execute only a [`Statement`], which
//! [`statement!`](crate::statement) creates and registers in [`STATEMENTS`]. A test prepares all registered statements against
//! the migrated schema.
//!
//! A join of rows of an organization also compares the owners (`organization_id`), although the IDs alone would select the same
//! rows, so that the statement reads each organization at one place if the database is distributed by owner. docs/scaling.md, "On a
//! distributed engine", lists the exceptions, which would be slower on a single server.
//!
//! These statements are not registered, and tests execute all of them:
//!
//! - the migrations
//! - the statements that create the database roles (`roles`), on a separate session
//! - the commands that begin and end a transaction
//! - the statements that the operators' `import` and `export` compose from the fields of the data, on separate sessions

/// A named SQL statement.
#[derive(Debug)]
pub struct Statement {
    name: &'static str,
    sql: &'static str,
}

impl Statement {
    /// For [`statement!`](crate::statement), which registers the statement.
    #[doc(hidden)]
    pub const fn registered(name: &'static str, sql: &'static str) -> Self {
        Statement { name, sql }
    }

    /// Returns the module path and the name, such as `partner_api_store::branches::LIST`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the SQL text.
    pub fn sql(&self) -> &'static str {
        self.sql
    }
}

/// A statement that is prepared on a connection. It can be sent without a further round trip, so several of them can be
/// pipelined. They are sent in the order in which their futures are first polled, which `futures::join!` preserves.
#[derive(Clone, Debug)]
pub struct Prepared(pub(super) tokio_postgres::Statement);

/// For [`statement!`](crate::statement) in other crates.
#[doc(hidden)]
pub use linkme;

/// All statements of all linked crates, in no particular order.
#[allow(unsafe_code)]
#[linkme::distributed_slice]
pub static STATEMENTS: [&'static Statement];

/// Declares and registers a statement: `statement! { /// Finds a report. pub(super) FIND = "SELECT …"; }`.
#[macro_export]
macro_rules! statement {
    ($($(#[$about:meta])* $visibility:vis $name:ident = $sql:expr;)+) => {$(
        $(#[$about])*
        $visibility static $name: &$crate::statement::Statement = {
            #[allow(unsafe_code)]
            #[$crate::statement::linkme::distributed_slice($crate::statement::STATEMENTS)]
            #[linkme(crate = $crate::statement::linkme)]
            static REGISTERED: &$crate::statement::Statement = &$crate::statement::Statement::registered(
                concat!(module_path!(), "::", stringify!($name)),
                $sql,
            );
            REGISTERED
        };
    )+};
}
