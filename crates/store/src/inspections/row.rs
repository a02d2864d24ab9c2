//! Row mapping that the list and the detail share.

use partner_api_domain::personal::{StoredPlate, StoredVin};
use tokio_postgres::{Row, types::FromSql};

use crate::column::Text;
use crate::{DbError, column};

/// Reads the columns of a row one after the other, in the order of the statement.
pub(crate) struct Columns<'row> {
    row: &'row Row,
    next: usize,
}

impl<'row> Columns<'row> {
    /// Starts at the first column.
    pub(crate) fn of(row: &'row Row) -> Self {
        Self { row, next: 0 }
    }

    /// Reads the next column.
    pub(crate) fn take<T: FromSql<'row>>(&mut self) -> Result<T, DbError> {
        let value = self.row.try_get(self.next)?;
        self.next += 1;
        Ok(value)
    }

    /// Reads the next column as a domain type.
    pub(crate) fn text<T>(&mut self) -> Result<T, DbError>
    where
        Text<T>: FromSql<'row>,
    {
        self.take().map(|Text(value)| value)
    }

    /// Skips the next `count` columns.
    pub(crate) fn skip(&mut self, count: usize) {
        self.next += count;
    }

    /// Reads the next ten columns as a vehicle.
    pub(crate) fn vehicle(&mut self) -> Result<Vehicle, DbError> {
        Ok(Vehicle {
            plate: self.text()?,
            vin: self.text()?,
            brand: self.take()?,
            model: self.take()?,
            year: self.take()?,
            body_type: self.take()?,
            fuel_type: self.take()?,
            transmission: self.take()?,
            color: self.take()?,
            mileage_km: self.take()?,
        })
    }
}

/// The statuses of reports that partners may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Finished, and shown to the customer.
    Published,
    /// Archived, and no longer current.
    Archived,
    /// Withdrawn.
    Cancelled,
}

column! { Status { Published = "PUBLISHED", Archived = "ARCHIVED", Cancelled = "CANCELLED" } }

/// A vehicle as registered, with personal data as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vehicle {
    /// The plate in normal form.
    pub plate: StoredPlate,
    /// The vehicle identification number.
    pub vin: StoredVin,
    /// The manufacturer.
    pub brand: String,
    /// The model.
    pub model: String,
    /// The model year.
    pub year: i32,
    /// The body type's code.
    pub body_type: String,
    /// The fuel's code.
    pub fuel_type: String,
    /// The transmission's code.
    pub transmission: String,
    /// The color.
    pub color: String,
    /// The last registered mileage, in kilometers.
    pub mileage_km: i32,
}
