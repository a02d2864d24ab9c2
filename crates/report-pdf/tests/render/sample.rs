//! A realistic report for the tests and the example.

use chrono::{TimeZone, Utc};
use image::{ImageEncoder, Rgb, RgbImage, codecs::jpeg::JpegEncoder};
use report_pdf::{
    Branch, Device, Form, Limits, Photo, PhotoFormat, Point, Pricing, Report, Source, StatusRange, Vehicle,
};
use rust_decimal::Decimal;

type Row = (&'static str, &'static str, &'static str, &'static str, &'static str);

const GOOD: (&str, &str, &str) = ("GOOD", "İyi", "NONE");
const BORDERLINE: (&str, &str, &str) = ("BORDERLINE", "Sınırda", "MEDIUM");
const OUT: (&str, &str, &str) = ("OUT_OF_LIMIT", "Limit dışı", "HIGH");

const BODY: [&str; 12] = [
    "Ön kaput",
    "Sol ön çamurluk",
    "Sağ ön çamurluk",
    "Sol ön kapı",
    "Sağ ön kapı",
    "Sol arka kapı",
    "Sağ arka kapı",
    "Sol arka çamurluk",
    "Sağ arka çamurluk",
    "Bagaj kapağı",
    "Tavan",
    "Ön şase uçları",
];
const ENGINE: [&str; 12] = [
    "Motor yağı seviyesi",
    "Yağ kaçağı",
    "Soğutma suyu",
    "Triger seti",
    "Turbo",
    "Egzoz emisyonu",
    "Akü gerilimi",
    "Şarj dinamosu",
    "Enjektörler",
    "Motor kulakları",
    "Şanzıman yağı",
    "Debriyaj",
];
const INTERIOR: [&str; 12] = [
    "Hava yastıkları",
    "Emniyet kemerleri",
    "Klima",
    "Gösterge paneli",
    "Arıza kayıtları (OBD)",
    "Cam düğmeleri",
    "Koltuk ısıtma",
    "Multimedya",
    "Silecekler",
    "Far ayarı",
    "Direksiyon kumandası",
    "Tavan döşemesi",
];
const UNDERBODY: [&str; 12] = [
    "Ön rotiller",
    "Arka burçlar",
    "Ön amortisörler",
    "Arka amortisörler",
    "Ön fren diskleri",
    "Arka fren diskleri",
    "Fren hortumları",
    "Egzoz hattı",
    "Aks körükleri",
    "Direksiyon kutusu",
    "Alt muhafaza",
    "Yakıt deposu",
];
const TEST_LINE: [Row; 15] = [
    ("BRAKE_FRONT_LEFT", "Ön sol fren kuvveti", "3.42", "kN", "GOOD"),
    ("BRAKE_FRONT_RIGHT", "Ön sağ fren kuvveti", "3.28", "kN", "GOOD"),
    ("BRAKE_REAR_LEFT", "Arka sol fren kuvveti", "2.10", "kN", "BORDERLINE"),
    (
        "BRAKE_REAR_RIGHT",
        "Arka sağ fren kuvveti",
        "1.62",
        "kN",
        "OUT_OF_LIMIT",
    ),
    ("HANDBRAKE_LEFT", "El freni sol", "1.35", "kN", "GOOD"),
    ("HANDBRAKE_RIGHT", "El freni sağ", "1.31", "kN", "GOOD"),
    ("SUSP_FRONT_LEFT", "Ön sol süspansiyon", "78", "percent", "GOOD"),
    ("SUSP_FRONT_RIGHT", "Ön sağ süspansiyon", "74", "percent", "GOOD"),
    ("SUSP_REAR_LEFT", "Arka sol süspansiyon", "61.5", "percent", "GOOD"),
    ("SUSP_REAR_RIGHT", "Arka sağ süspansiyon", "44", "percent", "BORDERLINE"),
    ("SLIP_FRONT", "Ön aks yanal kayma", "-4.1", "m/km", "GOOD"),
    ("SLIP_REAR", "Arka aks yanal kayma", "7.8", "m/km", "BORDERLINE"),
    ("DYNO_FACTORY_HP", "Fabrika gücü", "150", "HP", "GOOD"),
    ("DYNO_MEASURED_HP", "Ölçülen güç", "141.8", "HP", "GOOD"),
    ("DYNO_RATIO", "Güç oranı", "94.53", "percent", "GOOD"),
];

/// The values computed from them. The sum of the handbrake has no limits.
const COMPUTED: [Row; 8] = [
    ("BRAKE_FRONT_SUM", "", "6.70", "kN", "GOOD"),
    ("BRAKE_FRONT_DIFFERENCE", "", "4.1", "percent", "GOOD"),
    ("BRAKE_REAR_SUM", "", "3.72", "kN", "BORDERLINE"),
    ("BRAKE_REAR_DIFFERENCE", "", "22.9", "percent", "BORDERLINE"),
    ("HANDBRAKE_SUM", "", "2.66", "kN", ""),
    ("HANDBRAKE_DIFFERENCE", "", "3.0", "percent", "GOOD"),
    ("SUSP_FRONT_DIFFERENCE", "", "5.1", "percent", "GOOD"),
    ("SUSP_REAR_DIFFERENCE", "", "28.5", "percent", "BORDERLINE"),
];

/// A report with four forms of twelve points, a test line, and six photos of 4:3 that are `photo_width` pixels wide.
pub fn report(photo_width: u32) -> Report {
    let time = |day, hour| {
        Utc.with_ymd_and_hms(2026, 5, day, hour, 3, 0)
            .single()
            .unwrap_or_default()
    };
    Report {
        report_number: "EKS-2026-004217".to_owned(),
        organization_name: "Güneş Oto Ekspertiz A.Ş.".to_owned(),
        branch: Branch {
            name: "Kadıköy Şubesi".to_owned(),
            address: "Rasimpaşa Mah. Uzunhafız Sok. No: 48".to_owned(),
            district: "Kadıköy".to_owned(),
            city: "İstanbul".to_owned(),
            telephone: "0216 555 01 01".to_owned(),
        },
        inspector: "Şule Yıldız".to_owned(),
        published_at: time(5, 11),
        created_at: time(5, 8),
        status_label: "Yayımlandı".to_owned(),
        vehicle: Vehicle {
            plate: "34 ABC 123".to_owned(),
            vin: "WVWZZZ3CZKE012345".to_owned(),
            brand: "Volkswagen".to_owned(),
            model: "Passat 2.0 TDI".to_owned(),
            year: 2019,
            body_type: "SEDAN".to_owned(),
            fuel_type: "DIESEL".to_owned(),
            transmission: "SEMI_AUTOMATIC".to_owned(),
            color: "Gümüş gri".to_owned(),
            mileage_km: 128_100,
        },
        snapshot_mileage_km: 128_450,
        package_name: "Tam Ekspertiz".to_owned(),
        pricing: Pricing {
            base_price: Decimal::new(145_000, 2),
            discount_percent: Decimal::new(1250, 2),
            discount_name: "Bahar kampanyası".to_owned(),
            final_price: Decimal::new(126_875, 2),
            payment_type: "CARD".to_owned(),
            currency: "TRY".to_owned(),
        },
        overall_score: 78,
        summary: "Araç genel olarak bakımlıdır. Sol ön çamurluk değişmiş, sağ ön kapı boyalıdır; şase ve direklerde \
                  işlem görülmemiştir. Arka aks frenlerinde sağ ile sol arasında belirgin fark ölçülmüştür."
            .to_owned(),
        recommendation: "Satın almadan önce arka fren kaliperlerinin ve sağ arka amortisörün kontrol edilmesini, \
                         triger setinin 150.000 km'ye varmadan değiştirilmesini öneririz."
            .to_owned(),
        forms: forms(),
        photos: photos(photo_width),
        photos_in_all: 6,
        verification_url: Some("https://rapor.example.com/r/7f3kq2m9".to_owned()),
    }
}

fn forms() -> Vec<Form> {
    let form = |name: &str, category: &str, note: &str, points| Form {
        name: name.to_owned(),
        score_category: category.to_owned(),
        general_note: note.to_owned(),
        points,
        not_inspected: Vec::new(),
        is_test_line: false,
        computed: Vec::new(),
        devices: Vec::new(),
    };
    let mut body = points("BODY", &BODY, Some("µm"));
    set(
        &mut body[1],
        ("REPLACED", "Değişen", "HIGH"),
        "Sök-tak izleri var; orijinal parça ile değiştirilmiş.",
    );
    set(
        &mut body[4],
        ("PAINTED", "Boyalı", "MEDIUM"),
        "Kapı alt kenarında boya kalınlığı 210–260 µm.",
    );
    set(&mut body[9], ("LOCAL_PAINT", "Lokal boyalı", "LOW"), "");
    let mut engine = points("ENG", &ENGINE, None);
    set(&mut engine[1], BORDERLINE, "Karter birleşiminde hafif terleme.");
    set(
        &mut engine[3],
        ("NOT_CHECKED", "Kontrol edilemedi", "NONE"),
        "Kapak sökülmeden görülemiyor.",
    );
    let mut interior = points("INT", &INTERIOR, None);
    set(
        &mut interior[4],
        BORDERLINE,
        "P2463: partikül filtresi doluluk uyarısı.",
    );
    let mut underbody = points("UND", &UNDERBODY, None);
    set(&mut underbody[8], OUT, "Sağ ön aks körüğü yırtık, gres kaçırıyor.");
    let test_line = Form {
        name: "Test hattı kontrolleri".to_owned(),
        score_category: "TEST_LINE".to_owned(),
        general_note: "Ölçümler lastik basınçları ayarlandıktan sonra alınmıştır.".to_owned(),
        points: TEST_LINE.into_iter().map(measured).collect(),
        not_inspected: Vec::new(),
        is_test_line: true,
        computed: COMPUTED.into_iter().map(measured).collect(),
        devices: vec![Device {
            serial: "BRK2000-A".to_owned(),
            measured_at: Utc.with_ymd_and_hms(2026, 5, 5, 8, 41, 12).single().unwrap_or_default(),
            applied_at: Utc.with_ymd_and_hms(2026, 5, 5, 8, 44, 0).single(),
        }],
    };
    vec![
        form(
            "Kaporta kontrolü",
            "BODY",
            "Boya kalınlıkları mikron cihazıyla, her parçada beş noktadan ölçülmüştür.",
            body,
        ),
        form("Motor ve şanzıman", "ENGINE", "", engine),
        test_line,
        form("İç donanım ve elektronik", "INTERIOR", "", interior),
        form("Alt takım", "UNDERBODY", "Araç liftte incelenmiştir.", underbody),
    ]
}

fn points(prefix: &str, names: &[&str], unit: Option<&str>) -> Vec<Point> {
    let point = |(index, name): (usize, &&str)| Point {
        code: format!("{prefix}_{index:02}"),
        name: (*name).to_owned(),
        status_code: GOOD.0.to_owned(),
        status_label: GOOD.1.to_owned(),
        severity: GOOD.2.to_owned(),
        numeric_value: unit.map(|_| Decimal::from(95 + (index as i64 * 37) % 40)),
        unit: unit.map(str::to_owned),
        note: String::new(),
        limits: None,
        source: Source::Inspector,
    };
    names.iter().enumerate().map(point).collect()
}

fn set(point: &mut Point, status: (&str, &str, &str), note: &str) {
    point.status_code = status.0.to_owned();
    point.status_label = status.1.to_owned();
    point.severity = status.2.to_owned();
    point.note = note.to_owned();
}

fn measured((code, name, value, unit, status): Row) -> Point {
    let (status_code, status_label, severity) = match status {
        "GOOD" => GOOD,
        "BORDERLINE" => BORDERLINE,
        "" => ("", "", "NONE"),
        _ => OUT,
    };
    Point {
        code: code.to_owned(),
        name: name.to_owned(),
        status_code: status_code.to_owned(),
        status_label: status_label.to_owned(),
        severity: severity.to_owned(),
        numeric_value: value.parse().ok(),
        unit: Some(unit.to_owned()),
        note: if code == "BRAKE_REAR_RIGHT" {
            "Kaliper sıkışıklığı olabilir.".to_owned()
        } else {
            String::new()
        },
        limits: limits(code),
        // One value was entered by hand.
        source: match (name, code) {
            ("", _) => Source::Computed,
            (_, "SLIP_REAR") => Source::Inspector,
            _ => Source::Device(Some(0)),
        },
    }
}

/// Limits as an organization sets them.
fn limits(code: &str) -> Option<Limits> {
    let at_least = |good: i64, borderline: i64| {
        let (good, borderline) = (Decimal::new(good, 2), Decimal::new(borderline, 2));
        Limits {
            good: (Some(good), None),
            borderline: (Some(borderline), None),
            status_ranges: status_ranges(&[
                (Some(borderline), "OUT_OF_LIMIT"),
                (Some(good), "BORDERLINE"),
                (None, "GOOD"),
            ]),
        }
    };
    let at_most = |good: i64, borderline: i64| {
        let (good, borderline) = (Decimal::new(good, 2), Decimal::new(borderline, 2));
        Limits {
            good: (None, Some(good)),
            borderline: (None, Some(borderline)),
            status_ranges: status_ranges(&[
                (Some(good), "GOOD"),
                (Some(borderline), "BORDERLINE"),
                (None, "OUT_OF_LIMIT"),
            ]),
        }
    };
    let around = |good: i64, borderline: i64| {
        let (good, borderline) = (Decimal::from(good), Decimal::from(borderline));
        Limits {
            good: (Some(-good), Some(good)),
            borderline: (Some(-borderline), Some(borderline)),
            status_ranges: status_ranges(&[
                (Some(-borderline), "OUT_OF_LIMIT"),
                (Some(-good), "BORDERLINE"),
                (Some(good), "GOOD"),
                (Some(borderline), "BORDERLINE"),
                (None, "OUT_OF_LIMIT"),
            ]),
        }
    };
    Some(match code {
        "BRAKE_FRONT_LEFT" | "BRAKE_FRONT_RIGHT" => at_least(250, 200),
        "BRAKE_REAR_LEFT" | "BRAKE_REAR_RIGHT" => at_least(220, 170),
        "HANDBRAKE_LEFT" | "HANDBRAKE_RIGHT" => at_least(90, 65),
        "BRAKE_FRONT_SUM" => at_least(500, 400),
        "BRAKE_REAR_SUM" => at_least(440, 340),
        code if code.ends_with("_DIFFERENCE") => at_most(2_000, 3_000),
        code if code.starts_with("SUSP") => at_least(6_000, 4_000),
        code if code.starts_with("SLIP") => around(7, 9),
        "DYNO_RATIO" => at_least(9_000, 8_000),
        _ => return None,
    })
}

fn status_ranges(of: &[(Option<Decimal>, &str)]) -> Vec<StatusRange> {
    of.iter()
        .map(|(until, code)| StatusRange {
            until: *until,
            status_code: (*code).to_owned(),
        })
        .collect()
}

fn photos(width: u32) -> Vec<Photo> {
    let captions = [
        ("Hasar", Some("Sağ ön aks körüğündeki yırtık")),
        ("Dış görünüm", Some("Ön görünüm")),
        ("Dış görünüm", Some("Arka görünüm")),
        ("İç mekân", Some("Ön konsol")),
        ("Motor", None),
        ("Kilometre göstergesi", None),
    ];
    let photo = |(index, (kind, caption)): (usize, (&str, Option<&str>))| Photo {
        caption: caption.map(str::to_owned),
        kind: kind.to_owned(),
        point: (kind == "Hasar").then(|| "Aks körükleri".to_owned()),
        format: Some(PhotoFormat::Jpeg),
        data: jpeg(index as u32, width, width * 3 / 4),
    };
    captions.into_iter().enumerate().map(photo).collect()
}

/// An image with some structure, so that it needs about as much space and time as a photo.
pub fn jpeg(seed: u32, width: u32, height: u32) -> Vec<u8> {
    let picture = RgbImage::from_fn(width, height, |x, y| {
        let sky = (y * 255 / height) as u8;
        let grain = (x.wrapping_mul(7919) ^ y.wrapping_mul(104_729) ^ seed) % 17;
        let (dx, dy) = (x.abs_diff(width / 2), y.abs_diff(height * 3 / 5));
        if dx * 3 + dy * 5 < width && dy < height / 5 {
            Rgb([60 + (seed * 30) as u8, 70, 90 + grain as u8])
        } else {
            Rgb([200 - sky / 2 + grain as u8, 205 - sky / 3, 215 - sky / 4])
        }
    });
    let mut bytes = Vec::new();
    let encoded = JpegEncoder::new_with_quality(&mut bytes, 85).write_image(
        picture.as_raw(),
        width,
        height,
        image::ExtendedColorType::Rgb8,
    );
    if encoded.is_err() {
        bytes.clear();
    }
    bytes
}
