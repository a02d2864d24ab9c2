//! The form templates that an inspector fills by hand.

/// A status a point may be given: code, label, severity, and how often it is given in a hundred.
pub type StatusSpec = (&'static str, &'static str, &'static str, u32);

/// A point: code, name, and what is measured at it.
pub type PointSpec = (&'static str, &'static str, Option<Reading>);

/// A numeric reading: unit, lowest and highest value met in `scale` decimals' smallest step.
#[derive(Clone, Copy)]
pub struct Reading {
    /// The unit.
    pub unit: &'static str,
    /// Lowest and highest value, in steps of the last decimal.
    pub range: (i64, i64),
    /// Decimals.
    pub scale: u32,
}

/// A template to make for each organisation.
pub struct TemplateSpec {
    /// Form code.
    pub code: &'static str,
    /// Form name.
    pub name: &'static str,
    /// What its result counts towards.
    pub score_category: &'static str,
    /// The statuses its points may have, the best first.
    pub statuses: &'static [StatusSpec],
    /// Its points.
    pub points: &'static [PointSpec],
    /// Kind of the photos that show its points.
    pub photo_kind: &'static str,
    /// Sentences an inspector writes about a point that is not at its best.
    pub notes: &'static [&'static str],
}

const fn reading(unit: &'static str, low: i64, high: i64, scale: u32) -> Option<Reading> {
    Some(Reading {
        unit,
        range: (low, high),
        scale,
    })
}

/// The form of paint and panels: its readings depend on the status.
pub const BODY_PAINT: &str = "BODY_PAINT";

const PAINT: Option<Reading> = reading("µm", 85, 160, 0);

/// Four templates; the fifth of each organisation is the test-line form.
pub const TEMPLATES: [TemplateSpec; 4] = [
    TemplateSpec {
        code: BODY_PAINT,
        name: "Kaporta ve Boya",
        score_category: "BODY",
        statuses: &[
            ("ORIGINAL", "Orijinal", "NONE", 74),
            ("LOCAL_PAINT", "Lokal boyalı", "LOW", 11),
            ("PAINTED", "Boyalı", "MEDIUM", 11),
            ("REPLACED", "Değişen", "HIGH", 4),
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
        notes: &[
            "Park halinde sürtme kaynaklı yüzeysel çizik, pasta ile giderilebilir.",
            "Boya kalınlığı komşu panellere göre yüksek, işçilik temiz.",
            "Kenarda küçük göçük mevcut, boyasız düzeltme mümkün.",
            "Cıvata başlarında anahtar izi var, parça sökülmüş.",
            "Vernikte yer yer portakallanma görüldü.",
            "Tramer kaydındaki onarımla uyumlu.",
        ],
    },
    TemplateSpec {
        code: "ENGINE",
        name: "Motor ve Şanzıman",
        score_category: "MECHANICAL",
        statuses: &[
            ("GOOD", "İyi", "NONE", 82),
            ("WORN", "Yıpranmış", "LOW", 9),
            ("LEAKING", "Kaçak var", "MEDIUM", 7),
            ("FAULTY", "Arızalı", "HIGH", 2),
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
        notes: &[
            "Üst kapak contasında terleme var, takip edilmeli.",
            "Yağ değişim zamanı gelmiş.",
            "Soğuk çalışmada kısa süreli ses duyuldu.",
            "Şanzıman karterinde hafif yağ kaçağı.",
            "Vakum hortumu sertleşmiş, değişimi önerilir.",
        ],
    },
    TemplateSpec {
        code: "UNDERCARRIAGE",
        name: "Alt Takım ve Yürüyen Aksam",
        score_category: "MECHANICAL",
        statuses: &[
            ("GOOD", "İyi", "NONE", 79),
            ("WORN", "Yıpranmış", "LOW", 10),
            ("LOOSE", "Boşluk var", "MEDIUM", 8),
            ("CORRODED", "Paslı", "MEDIUM", 2),
            ("BROKEN", "Kırık", "HIGH", 1),
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
        notes: &[
            "Salıncak burcunda çatlak başlangıcı var.",
            "Rot başında hafif boşluk hissedildi.",
            "Aks körüğünde terleme, yırtık yok.",
            "Alt muhafaza sacı sökülmüş, tekrar takılmalı.",
            "Lastiklerin üretim yılı farklı.",
        ],
    },
    TemplateSpec {
        code: "INTERIOR",
        name: "İç Kondisyon ve Elektronik",
        score_category: "INTERIOR",
        statuses: &[
            ("GOOD", "İyi", "NONE", 86),
            ("WORN", "Yıpranmış", "LOW", 9),
            ("MISSING", "Eksik", "MEDIUM", 2),
            ("FAULTY", "Arızalı", "MEDIUM", 3),
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
        notes: &[
            "Sürücü koltuğu yan desteğinde aşınma var.",
            "Direksiyon simidinde parlama, kilometre ile uyumlu.",
            "Sağ arka cam kumandası geç tepki veriyor.",
            "Geçmişe ait hata kaydı silindi, tekrar oluşmadı.",
        ],
    },
];

/// Packages: name, list price in TRY, and how many of [`TEMPLATES`] it has; the test line is part of the last two.
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
