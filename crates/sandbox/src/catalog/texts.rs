//! The sentences of inspectors' texts.
//!
//! `{tc}` is replaced by a national ID, `{tel}` by a telephone number and `{ad}` by a first name. These are personal data, which the
//! privacy mode may remove. `{km}` is replaced by the mileage that was read, and `{son_bakim}` and `{sonraki_bakim}` by a lower
//! and a higher one. `{tl}` is replaced by a price. These are never removed.
//!
//! Texts agree with the findings: each sentence has a condition that the report must meet.

use crate::findings::Findings;

/// A sentence and its condition.
pub struct Sentence {
    /// The sentence.
    pub text: &'static str,
    /// Whether the sentence is true for these findings.
    pub holds: fn(&Findings) -> bool,
}

const fn sentence(text: &'static str, holds: fn(&Findings) -> bool) -> Sentence {
    Sentence { text, holds }
}

/// First names of customers.
pub const FIRST_NAMES: [&str; 24] = [
    "Ahmet", "Ayşe", "Barış", "Burak", "Cem", "Çağla", "Deniz", "Derya", "Elif", "Emre", "Fatma", "Gökhan", "Gül",
    "Hakan", "İbrahim", "Kerem", "Mehmet", "Merve", "Murat", "Onur", "Özge", "Selin", "Şule", "Yusuf",
];

/// Inspectors.
pub const INSPECTORS: [&str; 24] = [
    "Ahmet Yılmaz",
    "Ayşe Kaya",
    "Barış Demir",
    "Burak Şahin",
    "Cem Çelik",
    "Çağla Yıldız",
    "Deniz Aydın",
    "Derya Özdemir",
    "Elif Arslan",
    "Emre Doğan",
    "Fatma Kılıç",
    "Gökhan Aslan",
    "Gül Çetin",
    "Hakan Kara",
    "İbrahim Koç",
    "Kerem Kurt",
    "Mehmet Özkan",
    "Merve Şimşek",
    "Murat Polat",
    "Onur Öztürk",
    "Özge Güneş",
    "Selin Erdoğan",
    "Şule Bulut",
    "Yusuf Taş",
];

/// Front panels.
const FRONT: &[&str] = &["HOOD", "FENDER_FRONT_LEFT", "FENDER_FRONT_RIGHT"];
const RAILS: &[&str] = &["CHASSIS_RAIL_LEFT", "CHASSIS_RAIL_RIGHT"];
const RUNNING: &[&str] = &[
    "CONTROL_ARM_LEFT",
    "CONTROL_ARM_RIGHT",
    "TIE_ROD_ENDS",
    "CV_BOOTS",
    "BRAKE_DISCS",
    "BRAKE_PADS",
];
const DRIVE: &[&str] = &["ENGINE_OIL", "COMPRESSION", "COOLANT", "TURBO", "GEARBOX", "CLUTCH"];
const LINE: &[&str] = &["BRAKE_", "HANDBRAKE_", "SUSP_", "SLIP_"];

/// Sentences about services: one for summaries and one for recommendations.
pub const SERVICES: [&str; 2] = [
    "Bakımları düzenli yapılmış; son bakım {son_bakim} km'de.",
    "Bir sonraki bakımın {sonraki_bakim} km'de yapılması önerilir.",
];

/// Summaries.
pub const SUMMARIES: [Sentence; 11] = [
    sentence(
        "Araç genel olarak bakımlı ve temiz kullanılmış durumda. Kilometresiyle uyumlu aşınma dışında olumsuzluk görülmedi.",
        |found| !found.is_bad(&[]),
    ),
    sentence(
        "Motor ve şanzıman sorunsuz çalışıyor, soğuk ve sıcak çalıştırmada ses veya titreşim yok. Gösterge {km} km ile servis kayıtları uyumlu.",
        |found| found.is_fine(DRIVE),
    ),
    sentence(
        "Yürüyen aksam sağlam, şasi ve podyelerde işlem izine rastlanmadı.",
        |found| found.is_fine(RUNNING) && found.is_fine(RAILS),
    ),
    sentence(
        "Test hattında fren, süspansiyon ve yanal kayma değerleri sınırlar içinde; {km} km için iyi korunmuş bir araç.",
        |found| found.is_fine(LINE) && found.has("BRAKE_FRONT_LEFT"),
    ),
    sentence(
        "Elektronik taramada hata kaydı yok; iç kondisyon kilometresine göre iyi.",
        |found| found.is_fine(&["OBD_CODES", "SEATS", "STEERING_WHEEL"]) && found.reads("OBD_CODES", 0),
    ),
    sentence(
        "Araçta boyalı ve lokal boyalı paneller mevcut; ölçümler formda belirtilmiştir.",
        |found| found.any(&[], &["PAINTED"]) && found.any(&[], &["LOCAL_PAINT"]),
    ),
    sentence(
        "Alt takımda boşluklar ve motorda kaçak tespit edildi. Giderilmesi için yaklaşık {tl} TL masraf öngörülür.",
        |found| found.any(&[], &["LOOSE"]) && found.any(&[], &["LEAKING"]),
    ),
    sentence(
        "Ön bölgede değişen parça var; şasi uçlarında işlem görülmedi.",
        |found| found.any(FRONT, &["REPLACED"]) && found.is_fine(RAILS),
    ),
    sentence(
        "Test hattında sınırda ya da limit dışı değerler ölçüldü; ayrıntısı test hattı bölümündedir.",
        |found| found.is_bad(LINE),
    ),
    sentence("Klima performansı düşük, gaz kontrolü gerekir.", |found| {
        found.any(&["AIR_CONDITIONING"], &["WORN", "FAULTY"])
    }),
    sentence(
        "Tespitler ilgili bölümlerde noktası noktasına belirtilmiştir.",
        |found| found.is_bad(&[]),
    ),
];

/// Sentences with personal data, which inspectors sometimes write although they should not.
pub const PERSONAL: [&str; 8] = [
    "Araç sahibi {ad} Bey ile görüşüldü, tel {tel}.",
    "Ruhsat sahibinin T.C. kimlik no: {tc}.",
    "Alıcı {ad} Hanım sonuç için {tel} numarasından aranacak.",
    "Vekaletname kontrol edildi (TC {tc}), iletişim {tel}.",
    "Önceki servis: {tel}, {ad} Usta.",
    "Araç {ad} adına kayıtlı, kimlik {tc}.",
    "WhatsApp üzerinden {tel} hattına fotoğraf gönderildi.",
    "Teslim alan: {ad}, {tc}, {tel}.",
];

/// Recommendations.
pub const RECOMMENDATIONS: [Sentence; 6] = [
    sentence("Satın alınmasında sakınca görülmemiştir.", |found| {
        !found.is_bad(&[])
    }),
    sentence("Periyodik bakım dışında işlem gerektirmez.", |found| {
        !found.is_bad(&[])
    }),
    sentence(
        "Belirtilen alt takım parçaları değiştirildikten sonra satın alınması önerilir.",
        |found| found.is_bad(RUNNING),
    ),
    sentence("Yaklaşık {tl} TL masraf fiyata yansıtılmalıdır.", |found| {
        found.is_bad(&[])
    }),
    sentence("Kaçak için yetkili servis kontrolü önerilir.", |found| {
        found.any(&[], &["LEAKING"])
    }),
    sentence(
        "Satın alma öncesi hasar kayıtlarının ayrıntılı incelenmesi önerilir.",
        |found| found.any(&[], &["PAINTED", "REPLACED"]),
    ),
];

/// Notes on whole forms: the form's code, or none for any form, and the note.
pub const GENERAL_NOTES: [(Option<&str>, &str); 7] = [
    (Some("UNDERCARRIAGE"), "Kontroller araç liftteyken yapıldı."),
    (
        Some("BODY_PAINT"),
        "Araç kirli geldiğinden yüzeysel çizikler tam değerlendirilemedi.",
    ),
    (None, "Ölçümler kalibreli cihazla, {km} km'de yapılmıştır."),
    (None, "Form kapsamındaki noktalar kontrol edildi."),
    (
        Some("ENGINE"),
        "Motor çalışma sıcaklığına ulaştıktan sonra kontrol edildi.",
    ),
    (Some("INTERIOR"), "Test sürüşü şehir içi güzergâhta yapıldı."),
    (
        Some("TEST_LINE"),
        "Lastik basınçları ölçümden önce ayarlandı; göstergede {km} km okundu.",
    ),
];

/// Captions of photos, for any kind.
pub const CAPTIONS: [&str; 4] = [
    "Genel görünüm",
    "Detay",
    "Kontrol sırasında çekildi",
    "Müşteriye gösterildi",
];
