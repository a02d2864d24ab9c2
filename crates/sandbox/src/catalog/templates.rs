//! The form templates that inspectors fill in.

use partner_api_domain::template;

/// A status of a point: code, label, severity, its frequency in percent, and the label in English. One that never occurs in the data
/// is among the page's less common ones.
pub type StatusSpec = (&'static str, &'static str, &'static str, u32, &'static str);

/// A kind of photos: code, label, label in English, and the number that a report is expected to have.
pub type PhotoKindSpec = (&'static str, &'static str, &'static str, u8);

/// A point: code, name, and its numeric reading if it has one.
pub type PointSpec = (&'static str, &'static str, Option<Reading>);

/// A numeric reading.
#[derive(Clone, Copy)]
pub struct Reading {
    /// The unit.
    pub unit: &'static str,
    /// The lowest and highest value, in units of the last decimal place.
    pub range: (i64, i64),
    /// The number of decimal places.
    pub scale: u32,
}

/// A template to create for each organization.
pub struct TemplateSpec {
    /// Form code.
    pub code: &'static str,
    /// Form name.
    pub name: &'static str,
    /// The score category to which it counts.
    pub score_category: &'static str,
    /// The statuses of its points, best first.
    pub statuses: &'static [StatusSpec],
    /// Its points.
    pub points: &'static [PointSpec],
    /// The kind of photos of its points.
    pub photo_kind: &'static str,
    /// The kinds of photos that belong to it.
    pub photo_kinds: &'static [PhotoKindSpec],
    /// The notes that inspectors write about points with defects.
    pub notes: &'static [Note],
}

/// Returns whether a status makes sense for a point. A belt, for example, does not leak.
#[must_use]
pub fn can_be(point: &str, status: &str) -> bool {
    let points: &[&str] = match status {
        "LEAKING" => &["ENGINE_OIL", "COOLANT", "TURBO", "GEARBOX", "EXHAUST"],
        "LOOSE" => &["CONTROL_ARM", "TIE_ROD", "CV_BOOTS"],
        "CORRODED" => &["CHASSIS_RAIL", "BRAKE_DISCS"],
        "BROKEN" => &["CONTROL_ARM", "CV_BOOTS"],
        "MISSING" => &["SEAT_BELTS", "AIRBAGS", "WINDOWS"],
        "WORN" => return !point.starts_with("CHASSIS_RAIL") && point != "COMPRESSION" && point != "OBD_CODES",
        _ => return true,
    };
    points.iter().any(|code| point.starts_with(code))
}

/// A note with the points and statuses that it fits. An empty list fits all.
pub struct Note {
    /// Codes of points, or prefixes of codes.
    pub points: &'static [&'static str],
    /// Status codes.
    pub statuses: &'static [&'static str],
    /// The note.
    pub text: &'static str,
}

const fn note(points: &'static [&'static str], statuses: &'static [&'static str], text: &'static str) -> Note {
    Note { points, statuses, text }
}

impl TemplateSpec {
    /// Returns the statuses as the database stores them.
    #[must_use]
    pub fn stored_statuses(&self) -> Vec<template::Status> {
        let statuses = self.statuses.iter();
        let stored = statuses.map(|(code, label, severity, frequency, label_en)| template::Status {
            code: (*code).to_owned(),
            label: (*label).to_owned(),
            label_en: Some((*label_en).to_owned()),
            severity: (*severity).to_owned(),
            is_common: *frequency > 0,
        });
        stored.collect()
    }

    /// Returns the kinds of photos as the database stores them.
    #[must_use]
    pub fn stored_photo_kinds(&self) -> Vec<template::PhotoKind> {
        let kinds = self.photo_kinds.iter();
        let stored = kinds.map(|(code, label, label_en, expected)| template::PhotoKind {
            code: (*code).to_owned(),
            label: (*label).to_owned(),
            label_en: Some((*label_en).to_owned()),
            expected: *expected,
        });
        stored.collect()
    }
}

impl Note {
    /// Returns whether the note fits an answer.
    #[must_use]
    pub fn fits(&self, point: &str, status: &str) -> bool {
        (self.points.is_empty() || self.points.iter().any(|code| point.starts_with(code)))
            && (self.statuses.is_empty() || self.statuses.contains(&status))
    }
}

const fn reading(unit: &'static str, low: i64, high: i64, scale: u32) -> Option<Reading> {
    Some(Reading {
        unit,
        range: (low, high),
        scale,
    })
}

/// The form of paint and panels, whose readings depend on the status.
pub const BODY_PAINT: &str = "BODY_PAINT";

const PAINT: Option<Reading> = reading("µm", 85, 160, 0);

/// Four templates. Each organization also has the test-line form.
pub const TEMPLATES: [TemplateSpec; 4] = [
    TemplateSpec {
        code: BODY_PAINT,
        name: "Kaporta ve Boya",
        score_category: "BODY",
        statuses: &[
            ("ORIGINAL", "Orijinal", "NONE", 74, "Original"),
            ("LOCAL_PAINT", "Lokal boyalı", "LOW", 11, "Spot-painted"),
            ("PAINTED", "Boyalı", "MEDIUM", 11, "Painted"),
            ("REPLACED", "Değişen", "HIGH", 4, "Replaced"),
            ("CORRODED", "Paslı", "MEDIUM", 0, "Corroded"),
            ("MISSING", "Eksik", "MEDIUM", 0, "Missing"),
            ("BROKEN", "Kırık", "HIGH", 0, "Broken"),
        ],
        points: &[
            ("HOOD", "Motor kaputu", PAINT),
            ("ROOF", "Tavan", PAINT),
            ("TRUNK_LID", "Bagaj kapağı", PAINT),
            ("FENDER_FRONT_LEFT", "Sol ön çamurluk", PAINT),
            ("FENDER_FRONT_RIGHT", "Sağ ön çamurluk", PAINT),
            ("DOOR_FRONT_LEFT", "Sol ön kapı", PAINT),
            ("DOOR_FRONT_RIGHT", "Sağ ön kapı", PAINT),
            ("DOOR_REAR_LEFT", "Sol arka kapı", PAINT),
            ("DOOR_REAR_RIGHT", "Sağ arka kapı", PAINT),
            ("FENDER_REAR_LEFT", "Sol arka çamurluk", PAINT),
            ("FENDER_REAR_RIGHT", "Sağ arka çamurluk", PAINT),
            ("BUMPER_FRONT", "Ön tampon", None),
            ("BUMPER_REAR", "Arka tampon", None),
        ],
        photo_kind: "DAMAGE",
        photo_kinds: &[
            ("EXTERIOR", "Dış görünüm", "Exterior", 4),
            ("DAMAGE", "Hasar", "Damage", 0),
            ("REGISTRATION", "Ruhsat", "Registration certificate", 1),
            ("OTOSICIL_PDF", "Otosicil belgesi", "Otosicil record", 0),
        ],
        notes: &[
            note(&[], &["LOCAL_PAINT"], "Sürtme kaynaklı çizik lokal boyanmış."),
            note(
                &["HOOD", "ROOF", "TRUNK", "FENDER", "DOOR"],
                &["PAINTED"],
                "Boya kalınlığı komşu panellere göre yüksek, işçilik temiz.",
            ),
            note(&["BUMPER"], &["PAINTED", "LOCAL_PAINT"], "Tampon sökülmeden boyanmış."),
            note(
                &["HOOD", "TRUNK", "FENDER", "DOOR"],
                &["REPLACED"],
                "Cıvata başlarında anahtar izi var, parça değişmiş.",
            ),
            note(&["BUMPER", "ROOF"], &["REPLACED"], "Parça değişmiş, montajı düzgün."),
            note(&[], &["PAINTED"], "Vernikte yer yer portakallanma görüldü."),
            note(&[], &["PAINTED", "REPLACED"], "Hasar kaydındaki onarımla uyumlu."),
        ],
    },
    TemplateSpec {
        code: "ENGINE",
        name: "Motor ve Şanzıman",
        score_category: "MECHANICAL",
        statuses: &[
            ("GOOD", "İyi", "NONE", 82, "Good"),
            ("WORN", "Yıpranmış", "LOW", 9, "Worn"),
            ("LEAKING", "Kaçak var", "MEDIUM", 7, "Leaking"),
            ("FAULTY", "Arızalı", "HIGH", 2, "Faulty"),
            ("LOOSE", "Boşluk var", "MEDIUM", 0, "Loose"),
            ("CORRODED", "Paslı", "MEDIUM", 0, "Corroded"),
            ("MISSING", "Eksik", "MEDIUM", 0, "Missing"),
            ("BROKEN", "Kırık", "HIGH", 0, "Broken"),
        ],
        points: &[
            ("ENGINE_OIL", "Motor yağı", None),
            ("COMPRESSION", "Kompresyon", reading("bar", 105, 142, 1)),
            ("COOLANT", "Soğutma suyu ve hortumlar", None),
            ("TIMING_BELT", "Triger kayışı", None),
            ("TURBO", "Turbo", None),
            ("BATTERY_VOLTAGE", "Akü gerilimi", reading("V", 1190, 1285, 2)),
            ("ALTERNATOR", "Şarj gerilimi", reading("V", 1360, 1455, 2)),
            ("GEARBOX", "Şanzıman", None),
            ("CLUTCH", "Debriyaj", None),
            ("EXHAUST", "Egzoz", None),
        ],
        photo_kind: "ENGINE",
        photo_kinds: &[("ENGINE", "Motor", "Engine", 1)],
        notes: &[
            note(
                &["ENGINE_OIL"],
                &["LEAKING"],
                "Üst kapak contasında terleme var, takip edilmeli.",
            ),
            note(&["ENGINE_OIL"], &["WORN"], "Yağ değişim zamanı gelmiş."),
            note(
                &["TIMING_BELT", "CLUTCH", "TURBO"],
                &["WORN", "FAULTY"],
                "Soğuk çalışmada kısa süreli ses duyuldu.",
            ),
            note(&["GEARBOX"], &["LEAKING"], "Şanzıman karterinde hafif yağ kaçağı."),
            note(
                &["COOLANT"],
                &["WORN", "LEAKING"],
                "Hortum sertleşmiş, değişimi önerilir.",
            ),
            note(
                &["BATTERY", "ALTERNATOR"],
                &["WORN", "FAULTY"],
                "Marşta gerilim düşüyor, yük testi önerilir.",
            ),
            note(&["EXHAUST"], &["LEAKING", "WORN"], "Bağlantı yerinde kurum izi var."),
        ],
    },
    TemplateSpec {
        code: "UNDERCARRIAGE",
        name: "Alt Takım ve Yürüyen Aksam",
        score_category: "MECHANICAL",
        statuses: &[
            ("GOOD", "İyi", "NONE", 79, "Good"),
            ("WORN", "Yıpranmış", "LOW", 10, "Worn"),
            ("LOOSE", "Boşluk var", "MEDIUM", 8, "Loose"),
            ("CORRODED", "Paslı", "MEDIUM", 2, "Corroded"),
            ("BROKEN", "Kırık", "HIGH", 1, "Broken"),
            ("LEAKING", "Kaçak var", "MEDIUM", 0, "Leaking"),
            ("MISSING", "Eksik", "MEDIUM", 0, "Missing"),
            ("FAULTY", "Arızalı", "HIGH", 0, "Faulty"),
        ],
        points: &[
            ("CHASSIS_RAIL_LEFT", "Sol şasi", None),
            ("CHASSIS_RAIL_RIGHT", "Sağ şasi", None),
            ("CONTROL_ARM_LEFT", "Sol salıncak", None),
            ("CONTROL_ARM_RIGHT", "Sağ salıncak", None),
            ("TIE_ROD_ENDS", "Rot başları", None),
            ("CV_BOOTS", "Aks körükleri", None),
            ("BRAKE_DISCS", "Fren diskleri", reading("mm", 198, 258, 1)),
            ("BRAKE_PADS", "Fren balataları", reading("mm", 28, 112, 1)),
            ("TYRE_FRONT", "Ön lastik diş derinliği", reading("mm", 21, 79, 1)),
            ("TYRE_REAR", "Arka lastik diş derinliği", reading("mm", 24, 80, 1)),
        ],
        photo_kind: "UNDERBODY",
        photo_kinds: &[("UNDERBODY", "Araç altı", "Underbody", 1)],
        notes: &[
            note(&["CONTROL_ARM"], &[], "Salıncak burcunda çatlak başlangıcı var."),
            note(&["TIE_ROD"], &["LOOSE"], "Rot başında hafif boşluk hissedildi."),
            note(&["CV_BOOTS"], &["WORN"], "Aks körüğünde terleme, yırtık yok."),
            note(&["CV_BOOTS"], &["BROKEN"], "Aks körüğü yırtık, gres kaçırıyor."),
            note(&["CHASSIS_RAIL"], &["CORRODED"], "Yüzeyde pas var, kesitte kayıp yok."),
            note(&["TYRE"], &[], "Aynı aksın lastiklerinin üretim yılı farklı."),
            note(
                &["BRAKE"],
                &["WORN"],
                "Aşınma sınırına yaklaşmış, bir sonraki bakımda değişmeli.",
            ),
        ],
    },
    TemplateSpec {
        code: "INTERIOR",
        name: "İç Kondisyon ve Elektronik",
        score_category: "INTERIOR",
        statuses: &[
            ("GOOD", "İyi", "NONE", 86, "Good"),
            ("WORN", "Yıpranmış", "LOW", 9, "Worn"),
            ("MISSING", "Eksik", "MEDIUM", 2, "Missing"),
            ("FAULTY", "Arızalı", "MEDIUM", 3, "Faulty"),
            ("LOOSE", "Boşluk var", "MEDIUM", 0, "Loose"),
            ("CORRODED", "Paslı", "MEDIUM", 0, "Corroded"),
            ("LEAKING", "Kaçak var", "MEDIUM", 0, "Leaking"),
            ("BROKEN", "Kırık", "HIGH", 0, "Broken"),
        ],
        points: &[
            ("SEATS", "Koltuk ve döşemeler", None),
            ("STEERING_WHEEL", "Direksiyon simidi", None),
            ("DASHBOARD", "Gösterge paneli", None),
            ("AIR_CONDITIONING", "Klima üfleme sıcaklığı", reading("°C", 42, 118, 1)),
            ("AIRBAGS", "Hava yastıkları", None),
            ("SEAT_BELTS", "Emniyet kemerleri", None),
            ("WINDOWS", "Cam ve kumandalar", None),
            ("OBD_CODES", "Beyin hata kaydı", reading("adet", 0, 3, 0)),
        ],
        photo_kind: "INTERIOR",
        photo_kinds: &[
            ("INTERIOR", "İç mekân", "Interior", 1),
            ("ODOMETER", "Kilometre göstergesi", "Odometer", 1),
        ],
        notes: &[
            note(&["SEATS"], &["WORN"], "Sürücü koltuğu yan desteğinde aşınma var."),
            note(
                &["STEERING"],
                &["WORN"],
                "Direksiyon simidinde parlama, kilometre ile uyumlu.",
            ),
            note(&["WINDOWS"], &[], "Sağ arka cam kumandası geç tepki veriyor."),
            note(
                &["AIR_CONDITIONING"],
                &["WORN", "FAULTY"],
                "Üfleme sıcaklığı geç düşüyor, gaz kontrolü gerekir.",
            ),
            note(
                &["SEAT_BELTS", "AIRBAGS"],
                &["FAULTY", "MISSING"],
                "Güvenlik donanımı; kullanımdan önce giderilmeli.",
            ),
        ],
    },
];

/// Packages: name, list price in TRY, number of [`TEMPLATES`], and whether the test line is included.
pub const PACKAGES: [(&str, i64, usize, bool); 4] = [
    ("Temel Ekspertiz", 2_450, 2, false),
    ("Standart Ekspertiz", 3_900, 3, false),
    ("Full Ekspertiz", 5_750, 4, true),
    ("Full + Test Hattı", 6_900, 4, true),
];

/// Discounts: name and percent.
pub const DISCOUNTS: [(&str, i64); 5] = [
    ("Hafta içi indirimi", 10),
    ("Galeri anlaşması", 15),
    ("Sadakat indirimi", 5),
    ("Kurumsal filo", 20),
    ("Bayram kampanyası", 25),
];
