//! One operation, one file: `endpoints::<tag>::<operation_id>::handle`. An operation in the document without its file
//! does not compile.

pub mod health;
pub mod inspections;
pub mod measurements;
pub mod organizations;
