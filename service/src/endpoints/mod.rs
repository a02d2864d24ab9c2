//! The operations, one file each: `endpoints::<tag>::<operation_id>::handle`. If the file of an operation in the document is
//! missing, the service does not compile.

pub mod health;
pub mod inspections;
pub mod measurements;
pub mod organizations;
