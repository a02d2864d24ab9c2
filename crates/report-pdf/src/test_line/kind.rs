//! The kind and the class of a value, derived from its point's code.

use super::row::Row;

/// The kind of device that measures a value.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Power,
    Suspension,
    Brake,
    Slip,
    Other,
}

/// Values that share a scale.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Class {
    Side,
    Sum,
    Difference,
    Ratio,
}

impl Class {
    pub(super) fn of(code: &str) -> Class {
        match code {
            code if code.ends_with("_DIFFERENCE") => Class::Difference,
            code if code.ends_with("_SUM") => Class::Sum,
            code if code.ends_with("_RATIO") => Class::Ratio,
            _ => Class::Side,
        }
    }
}

impl Kind {
    pub(super) const ALL: [Kind; 5] = [Kind::Brake, Kind::Suspension, Kind::Slip, Kind::Power, Kind::Other];

    pub(super) fn of(code: &str) -> Kind {
        match code.split('_').next() {
            Some("DYNO") => Kind::Power,
            Some("SUSP") => Kind::Suspension,
            Some("BRAKE" | "HANDBRAKE") => Kind::Brake,
            Some("SLIP") => Kind::Slip,
            _ => Kind::Other,
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Kind::Power => "Motor gücü (dinamometre)",
            Kind::Suspension => "Süspansiyon verimi",
            Kind::Brake => "Fren kuvveti",
            Kind::Slip => "Yanal kayma",
            Kind::Other => "Diğer ölçümler",
        }
    }

    pub(super) fn explanation(self, rows: &[Row]) -> &'static str {
        if !rows.iter().any(|row| row.is_computed) {
            return "";
        }
        match self {
            Kind::Brake => {
                "Toplam: akstaki iki tekerleğin toplam fren kuvveti. Fark: iki taraf arasındaki farkın güçlü tarafa oranı (%)."
            }
            Kind::Suspension => "Fark: iki taraf arasındaki farkın güçlü tarafa oranı (%).",
            Kind::Power => "Oran: ölçülen gücün, aracın kayıtlı fabrika gücüne oranı (%).",
            Kind::Slip | Kind::Other => "",
        }
    }

    /// The minimum end of the scale of a class.
    pub(super) fn min_end(self, class: Class, unit: Option<&str>) -> f64 {
        match (self, class, unit) {
            (_, Class::Difference, _) => 50.0,
            (Kind::Slip, ..) => 10.0,
            (_, Class::Ratio, _) => 120.0,
            (_, _, Some("percent" | "%")) => 100.0,
            _ => 0.0,
        }
    }
}
