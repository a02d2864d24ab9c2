//! Turkish names of codes. Vocabularies are open, so an unknown code is shown in a readable form.

/// The name of a fuel, for example `DIESEL` → `Dizel`.
pub(crate) fn fuel(code: &str) -> String {
    known(
        code,
        &[
            ("GASOLINE", "Benzin"),
            ("DIESEL", "Dizel"),
            ("LPG", "LPG"),
            ("HYBRID", "Hibrit"),
            ("ELECTRIC", "Elektrik"),
            ("OTHER", "Diğer"),
        ],
    )
}

/// The name of a transmission.
pub(crate) fn transmission(code: &str) -> String {
    known(
        code,
        &[
            ("MANUAL", "Manuel"),
            ("AUTOMATIC", "Otomatik"),
            ("SEMI_AUTOMATIC", "Yarı otomatik"),
            ("OTHER", "Diğer"),
        ],
    )
}

/// The name of a body type.
pub(crate) fn body(code: &str) -> String {
    known(
        code,
        &[
            ("SEDAN", "Sedan"),
            ("HATCHBACK", "Hatchback"),
            ("STATION_WAGON", "Station wagon"),
            ("WAGON", "Station wagon"),
            ("SUV", "SUV"),
            ("COUPE", "Coupe"),
            ("CONVERTIBLE", "Cabrio"),
            ("MPV", "MPV"),
            ("MINIVAN", "Minivan"),
            ("VAN", "Panelvan"),
            ("PICKUP", "Pikap"),
            ("MINIBUS", "Minibüs"),
            ("TRUCK", "Kamyon"),
            ("MOTORCYCLE", "Motosiklet"),
            ("OTHER", "Diğer"),
        ],
    )
}

/// The name of a payment method.
pub(crate) fn payment(code: &str) -> String {
    known(
        code,
        &[("CASH", "Nakit"), ("CARD", "Kart"), ("TRANSFER", "Havale / EFT")],
    )
}

/// The name of a category of forms.
pub(crate) fn category(code: &str) -> String {
    known(
        code,
        &[
            ("BODY", "Kaporta ve boya"),
            ("BODYWORK", "Kaporta ve boya"),
            ("PAINT", "Boya"),
            ("EXTERIOR", "Dış donanım"),
            ("INTERIOR", "İç donanım"),
            ("ENGINE", "Motor"),
            ("MECHANICAL", "Mekanik"),
            ("MECHANICS", "Mekanik"),
            ("POWERTRAIN", "Motor ve aktarma organları"),
            ("TRANSMISSION", "Şanzıman ve aktarma organları"),
            ("ELECTRICAL", "Elektrik ve elektronik"),
            ("ELECTRONICS", "Elektrik ve elektronik"),
            ("UNDERBODY", "Şasi ve alt takım"),
            ("CHASSIS", "Şasi ve alt takım"),
            ("SUSPENSION", "Süspansiyon ve direksiyon"),
            ("BRAKES", "Frenler"),
            ("TYRES", "Lastik ve jant"),
            ("TIRES", "Lastik ve jant"),
            ("SAFETY", "Güvenlik"),
            ("ROAD_TEST", "Yol testi"),
            ("TEST_LINE", "Test hattı"),
            ("HISTORY", "Araç geçmişi"),
            ("GENERAL", "Genel"),
        ],
    )
}

/// The name of an axle's device value, by its code without `_LEFT` or `_RIGHT`.
pub(crate) fn axle(stem: &str) -> Option<&'static str> {
    Some(match stem {
        "SUSP_FRONT" => "Ön süspansiyon",
        "SUSP_REAR" => "Arka süspansiyon",
        "BRAKE_FRONT" => "Ön fren",
        "BRAKE_REAR" => "Arka fren",
        "HANDBRAKE" => "El freni",
        _ => return None,
    })
}

fn known(code: &str, names: &[(&str, &str)]) -> String {
    match names.iter().find(|(known, _)| *known == code) {
        Some((_, name)) => (*name).to_owned(),
        None => readable(code),
    }
}

/// `ROAD_TEST` → `Road test`. A text that is not an upper-case code is returned unchanged.
fn readable(code: &str) -> String {
    let is_code = code
        .bytes()
        .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    let mut words = code.replace('_', " ");
    if is_code && let Some(tail) = words.get_mut(1..) {
        tail.make_ascii_lowercase();
    }
    if is_code { words } else { code.to_owned() }
}
