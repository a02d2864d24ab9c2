//! Statements, and the registry of all of them.
//!
//! A [`Connection`](super::connection::Connection) and its transactions execute nothing but a [`Statement`], and
//! [`statement!`](crate::statement) makes them: whatever can be executed is in [`STATEMENTS`], where a test prepares it against the migrated schema.
//!
//! Outside of the registry are only migrations, the partitions' DDL (`partitions`, which holds a session of its own),
//! the words that begin and end a [`Transaction`](super::transaction::Transaction), and what the operators' `import` and `export`
//! compose from the fields of what they bring in and out, for a session of their own; tests execute all of it.

/// A statement's text, under a name.
#[derive(Debug)]
pub struct Statement {
    name: &'static str,
    sql: &'static str,
}

impl Statement {
    /// For [`statement!`](crate::statement), which registers what it makes.
    #[doc(hidden)]
    pub const fn registered(name: &'static str, sql: &'static str) -> Self {
        Statement { name, sql }
    }

    /// The module and the name it stands under, as in `partner_api_store::branches::LIST`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The text.
    pub fn sql(&self) -> &'static str {
        self.sql
    }
}

/// For [`statement!`](crate::statement) in other crates.
#[doc(hidden)]
pub use linkme;

/// Every statement of the service, and of the crates around it that are linked, in no particular order.
#[allow(unsafe_code)]
#[linkme::distributed_slice]
pub static STATEMENTS: [&'static Statement];

/// Declares a statement and registers it: `statement! { /// Finds it. pub(super) FIND = "SELECT …" }`.
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
