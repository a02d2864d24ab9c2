//! Vehicle models that are common in Türkiye: maker, model, model years, factory power.

/// A vehicle model.
pub struct ModelSpec {
    /// World manufacturer identifier: the VIN's first three characters.
    pub wmi: &'static str,
    /// Maker.
    pub brand: &'static str,
    /// Model.
    pub model: &'static str,
    /// First and last model year.
    pub years: (i32, i32),
    /// Body type code.
    pub body: &'static str,
    /// Available engines.
    pub engines: &'static [Engine],
}

/// An engine: fuel code, transmission code, factory power in HP.
pub type Engine = (&'static str, &'static str, u16);

const fn model(
    wmi: &'static str,
    brand: &'static str,
    model: &'static str,
    years: (i32, i32),
    body: &'static str,
    engines: &'static [Engine],
) -> ModelSpec {
    ModelSpec {
        wmi,
        brand,
        model,
        years,
        body,
        engines,
    }
}

const G: &str = "GASOLINE";
const D: &str = "DIESEL";
const L: &str = "LPG";
const H: &str = "HYBRID";
const E: &str = "ELECTRIC";
const MAN: &str = "MANUAL";
const AUTO: &str = "AUTOMATIC";
const SEMI: &str = "SEMI_AUTOMATIC";

/// The models.
pub const MODELS: [ModelSpec; 32] = [
    model(
        "VF1",
        "Renault",
        "Clio",
        (2013, 2025),
        "HATCHBACK",
        &[(G, MAN, 90), (G, AUTO, 100), (D, MAN, 75), (L, MAN, 90)],
    ),
    model(
        "VF1",
        "Renault",
        "Megane",
        (2016, 2025),
        "SEDAN",
        &[(D, AUTO, 110), (D, MAN, 110), (G, AUTO, 140)],
    ),
    model(
        "VF1",
        "Renault",
        "Symbol",
        (2013, 2021),
        "SEDAN",
        &[(D, MAN, 75), (G, MAN, 75), (L, MAN, 90)],
    ),
    model(
        "NM4",
        "Fiat",
        "Egea",
        (2015, 2025),
        "SEDAN",
        &[(D, MAN, 95), (D, MAN, 120), (G, MAN, 95), (L, MAN, 95), (H, AUTO, 130)],
    ),
    model(
        "NM4",
        "Fiat",
        "Doblo",
        (2010, 2022),
        "VAN",
        &[(D, MAN, 90), (D, MAN, 105), (G, MAN, 95)],
    ),
    model(
        "NM4",
        "Fiat",
        "Linea",
        (2008, 2017),
        "SEDAN",
        &[(D, MAN, 90), (D, MAN, 95), (L, MAN, 77)],
    ),
    model(
        "WF0",
        "Ford",
        "Focus",
        (2011, 2024),
        "SEDAN",
        &[(D, MAN, 95), (D, AUTO, 120), (G, AUTO, 125)],
    ),
    model(
        "NM0",
        "Ford",
        "Tourneo Courier",
        (2014, 2025),
        "VAN",
        &[(D, MAN, 95), (D, MAN, 100), (G, MAN, 125)],
    ),
    model(
        "WF0",
        "Ford",
        "Fiesta",
        (2009, 2022),
        "HATCHBACK",
        &[(G, MAN, 82), (D, MAN, 75), (G, AUTO, 100)],
    ),
    model(
        "WVW",
        "Volkswagen",
        "Passat",
        (2011, 2023),
        "SEDAN",
        &[(D, AUTO, 120), (D, AUTO, 150), (G, AUTO, 150)],
    ),
    model(
        "WVW",
        "Volkswagen",
        "Golf",
        (2009, 2024),
        "HATCHBACK",
        &[(G, SEMI, 122), (G, AUTO, 150), (D, MAN, 105)],
    ),
    model(
        "WVW",
        "Volkswagen",
        "Polo",
        (2010, 2025),
        "HATCHBACK",
        &[(G, MAN, 80), (G, AUTO, 95), (D, MAN, 90)],
    ),
    model(
        "NMT",
        "Toyota",
        "Corolla",
        (2013, 2025),
        "SEDAN",
        &[(G, AUTO, 132), (H, AUTO, 122), (D, MAN, 90), (L, MAN, 132)],
    ),
    model(
        "NMT",
        "Toyota",
        "C-HR",
        (2017, 2025),
        "SUV",
        &[(H, AUTO, 122), (H, AUTO, 140), (G, AUTO, 116)],
    ),
    model(
        "NLH",
        "Hyundai",
        "i20",
        (2012, 2025),
        "HATCHBACK",
        &[(G, MAN, 84), (G, AUTO, 100), (D, MAN, 90)],
    ),
    model(
        "NLH",
        "Hyundai",
        "Accent Blue",
        (2011, 2018),
        "SEDAN",
        &[(D, MAN, 136), (D, AUTO, 136), (L, MAN, 100)],
    ),
    model(
        "TMA",
        "Hyundai",
        "Tucson",
        (2016, 2025),
        "SUV",
        &[(D, AUTO, 136), (G, AUTO, 180), (H, AUTO, 230)],
    ),
    model(
        "NLA",
        "Honda",
        "Civic",
        (2012, 2021),
        "SEDAN",
        &[(G, AUTO, 125), (L, AUTO, 125), (D, AUTO, 120)],
    ),
    model(
        "W0L",
        "Opel",
        "Astra",
        (2010, 2021),
        "HATCHBACK",
        &[(D, MAN, 110), (D, AUTO, 136), (G, AUTO, 140), (L, MAN, 115)],
    ),
    model(
        "W0V",
        "Opel",
        "Corsa",
        (2015, 2025),
        "HATCHBACK",
        &[(G, MAN, 75), (G, AUTO, 100), (D, MAN, 102)],
    ),
    model(
        "VF3",
        "Peugeot",
        "3008",
        (2017, 2025),
        "SUV",
        &[(D, AUTO, 130), (G, AUTO, 130), (G, AUTO, 180)],
    ),
    model(
        "VF3",
        "Peugeot",
        "301",
        (2013, 2021),
        "SEDAN",
        &[(D, MAN, 92), (D, MAN, 100), (G, AUTO, 115)],
    ),
    model(
        "VF7",
        "Citroën",
        "C-Elysée",
        (2013, 2021),
        "SEDAN",
        &[(D, MAN, 92), (D, MAN, 100), (G, AUTO, 115)],
    ),
    model(
        "UU1",
        "Dacia",
        "Duster",
        (2011, 2025),
        "SUV",
        &[(D, MAN, 90), (D, MAN, 110), (L, MAN, 100), (G, MAN, 130)],
    ),
    model(
        "UU1",
        "Dacia",
        "Sandero",
        (2013, 2025),
        "HATCHBACK",
        &[(G, MAN, 90), (D, MAN, 90), (L, MAN, 100)],
    ),
    model(
        "TMB",
        "Škoda",
        "Octavia",
        (2013, 2025),
        "SEDAN",
        &[(D, AUTO, 115), (G, AUTO, 150), (D, SEMI, 105)],
    ),
    model(
        "SJN",
        "Nissan",
        "Qashqai",
        (2010, 2025),
        "SUV",
        &[(D, MAN, 110), (D, AUTO, 130), (G, AUTO, 158)],
    ),
    model(
        "WBA",
        "BMW",
        "320i",
        (2012, 2024),
        "SEDAN",
        &[(G, AUTO, 170), (G, AUTO, 184)],
    ),
    model(
        "WDD",
        "Mercedes-Benz",
        "C 200 d",
        (2015, 2021),
        "SEDAN",
        &[(D, AUTO, 136), (D, AUTO, 160)],
    ),
    model(
        "WAU",
        "Audi",
        "A3",
        (2013, 2024),
        "SEDAN",
        &[(G, AUTO, 116), (D, AUTO, 116), (G, SEMI, 122)],
    ),
    model(
        "XP7",
        "Tesla",
        "Model Y",
        (2023, 2025),
        "SUV",
        &[(E, AUTO, 299), (E, AUTO, 514)],
    ),
    model(
        "WF0",
        "Ford",
        "Ranger",
        (2012, 2025),
        "PICKUP",
        &[(D, MAN, 130), (D, AUTO, 170), (D, AUTO, 213)],
    ),
];

/// Colors and their frequency in percent.
pub const COLORS: [(&str, u32); 7] = [
    ("Beyaz", 38),
    ("Gri", 18),
    ("Siyah", 14),
    ("Füme", 9),
    ("Kırmızı", 7),
    ("Mavi", 7),
    ("Lacivert", 3),
];
