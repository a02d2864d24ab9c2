//! Sentences. `{tc}` becomes a national id, `{tel}` a telephone number, `{ad}` a first name, `{km}` a mileage and
//! `{tl}` a price: the first three are personal and must not leave where the privacy mode forbids it, the last two stay.

/// First names of customers in the texts.
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

/// Summaries of a vehicle in good order.
pub const SUMMARIES_GOOD: [&str; 6] = [
    "Araç genel olarak bakımlı ve temiz kullanılmış durumda. Kaporta ve mekanik aksamda kilometresiyle uyumlu aşınma dışında olumsuzluk görülmedi.",
    "Motor ve şanzıman sorunsuz çalışıyor, soğuk ve sıcak çalıştırmada ses veya titreşim yok. Gösterge {km} km ile servis kayıtları uyumlu.",
    "Yürüyen aksam sağlam, fren değerleri dengeli. Panellerin büyük çoğunluğu orijinal.",
    "Kilometresine göre iyi korunmuş bir araç. Şasi ve podyelerde işlem izine rastlanmadı.",
    "Test sürüşünde direksiyon, fren ve süspansiyon tepkileri normal. Elektronik taramada aktif hata kaydı yok.",
    "Bakımları düzenli yapılmış; son bakım {km} km'de. Lastikler aynı marka ve üretim yılı yakın.",
];

/// Summaries of a vehicle with defects.
pub const SUMMARIES_MIXED: [&str; 5] = [
    "Araçta boyalı ve lokal boyalı paneller mevcut; ölçümler formda belirtilmiştir. Mekanik olarak kullanıma engel bir durum yok.",
    "Alt takımda boşluklar ve motorda terleme tespit edildi. Giderilmesi için yaklaşık {tl} TL masraf öngörülür.",
    "Ön bölgede onarım görmüş, değişen parça var. Şasi ölçüleri tolerans içinde.",
    "Fren ve süspansiyon değerleri sınırda, satın alma öncesi pazarlık konusu yapılmalı.",
    "Kaporta onarımları düzgün işçilikle yapılmış. Klima performansı düşük, gaz kontrolü gerekir.",
];

/// What inspectors add though they should not: personal data.
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

/// Recommendations for a vehicle in good order.
pub const RECOMMENDATIONS_GOOD: [&str; 4] = [
    "Satın alınmasında sakınca görülmemiştir.",
    "Periyodik bakım dışında işlem gerektirmez.",
    "Bir sonraki bakımın {km} km'de yapılması önerilir.",
    "Mevcut haliyle tavsiye edilir; lastik rotasyonu yapılmalı.",
];

/// Recommendations for a vehicle with defects.
pub const RECOMMENDATIONS_MIXED: [&str; 4] = [
    "Belirtilen alt takım parçaları değiştirildikten sonra satın alınması önerilir.",
    "Yaklaşık {tl} TL masraf fiyata yansıtılmalıdır.",
    "Motor yağ kaçağı için yetkili servis kontrolü önerilir.",
    "Satın alma öncesi hasar kayıtlarının ayrıntılı incelenmesi önerilir.",
];

/// Notes for a whole form.
pub const GENERAL_NOTES: [&str; 6] = [
    "Kontroller araç liftteyken yapıldı.",
    "Araç kirli geldiğinden yüzeysel çizikler tam değerlendirilemedi.",
    "Ölçümler kalibreli cihazla, {km} km'de yapılmıştır.",
    "Form kapsamındaki tüm noktalar kontrol edildi.",
    "Test sürüşü şehir içi güzergâhta yapıldı.",
    "Tahmini onarım bedeli {tl} TL.",
];

/// Captions of photos, for any kind.
pub const CAPTIONS: [&str; 6] = [
    "Genel görünüm",
    "Detay",
    "Kontrol sırasında çekildi",
    "Müşteriye gösterildi",
    "Onarım izi",
    "Üretim etiketi",
];
