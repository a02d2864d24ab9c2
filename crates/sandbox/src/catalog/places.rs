//! The three organizations and their branches.

/// An organization to create.
pub struct OrganizationSpec {
    /// Its name in URLs.
    pub slug: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// Its short name, with which the names of its branches begin.
    pub short: &'static str,
    /// `NONE`, `MASKED` or `FULL`.
    pub pii_mode: &'static str,
    /// Its letter in report numbers.
    pub letter: char,
}

/// A branch to create.
pub struct BranchSpec {
    /// Index of its organization in [`ORGANIZATIONS`].
    pub organization: usize,
    /// Its code.
    pub code: &'static str,
    /// Province.
    pub city: &'static str,
    /// District.
    pub district: &'static str,
    /// The province's number on plates.
    pub province: u8,
    /// Street address.
    pub address: &'static str,
    /// A telephone number with the exchange 555, which no landline has.
    pub telephone: &'static str,
    /// Whether it accepts measurements.
    pub is_active: bool,
}

/// The organization whose reports are masked.
pub const MASKED: usize = 0;
/// The organization whose reports contain no personal data.
pub const NONE: usize = 1;
/// The organization whose reports are not masked.
pub const FULL: usize = 2;

/// One organization for each privacy mode.
pub const ORGANIZATIONS: [OrganizationSpec; 3] = [
    OrganizationSpec {
        slug: "kuzey-yildizi",
        name: "Kuzey Yıldızı Oto Ekspertiz A.Ş.",
        short: "Kuzey Yıldızı",
        pii_mode: "MASKED",
        letter: 'K',
    },
    OrganizationSpec {
        slug: "mavi-kopru",
        name: "Mavi Köprü Araç Değerleme Ltd. Şti.",
        short: "Mavi Köprü",
        pii_mode: "NONE",
        letter: 'M',
    },
    OrganizationSpec {
        slug: "cinar-test",
        name: "Çınar Test İstasyonları A.Ş.",
        short: "Çınar Test",
        pii_mode: "FULL",
        letter: 'C',
    },
];

const fn branch(
    organization: usize,
    code: &'static str,
    city: &'static str,
    district: &'static str,
    province: u8,
    address: &'static str,
    telephone: &'static str,
) -> BranchSpec {
    BranchSpec {
        organization,
        code,
        city,
        district,
        province,
        address,
        telephone,
        is_active: true,
    }
}

/// Eighteen branches. One is inactive, and two have the code [`AMBIGUOUS_CODE`].
pub const BRANCHES: [BranchSpec; 18] = [
    branch(
        MASKED,
        "IST-KADIKOY",
        "İstanbul",
        "Kadıköy",
        34,
        "Rasimpaşa Mah. Uzunhafız Sok. No: 48",
        "0216 555 01 01",
    ),
    branch(
        MASKED,
        "IST-BESIKTAS",
        "İstanbul",
        "Beşiktaş",
        34,
        "Türkali Mah. Ihlamurdere Cad. No: 112",
        "0212 555 01 02",
    ),
    branch(
        MASKED,
        "IST-UMRANIYE",
        "İstanbul",
        "Ümraniye",
        34,
        "Şerifali Mah. Turgut Özal Bul. No: 210",
        "0216 555 01 03",
    ),
    branch(
        MASKED,
        "ANK-CANKAYA",
        "Ankara",
        "Çankaya",
        6,
        "Mustafa Kemal Mah. 2118. Cad. No: 7/A",
        "0312 555 01 04",
    ),
    branch(
        MASKED,
        "IZM-BORNOVA",
        "İzmir",
        "Bornova",
        35,
        "Kazımdirik Mah. 372. Sok. No: 14",
        "0232 555 01 05",
    ),
    branch(
        MASKED,
        "ANT-MURATPASA",
        "Antalya",
        "Muratpaşa",
        7,
        "Yeşilbahçe Mah. Metin Kasapoğlu Cad. No: 65",
        "0242 555 01 06",
    ),
    branch(
        MASKED,
        "KOC-GEBZE",
        "Kocaeli",
        "Gebze",
        41,
        "Köşklüçeşme Mah. Bağdat Cad. No: 331",
        "0262 555 01 07",
    ),
    branch(
        NONE,
        "IST-SISLI",
        "İstanbul",
        "Şişli",
        34,
        "Merkez Mah. Abide-i Hürriyet Cad. No: 158",
        "0212 555 02 01",
    ),
    branch(
        NONE,
        "ANK-YENIMAHALLE",
        "Ankara",
        "Yenimahalle",
        6,
        "Macun Mah. 204. Cad. No: 19",
        "0312 555 02 02",
    ),
    branch(
        NONE,
        "IZM-BORNOVA",
        "İzmir",
        "Bornova",
        35,
        "Yeşilova Mah. 4010. Sok. No: 6",
        "0232 555 02 03",
    ),
    BranchSpec {
        organization: NONE,
        code: "BUR-NILUFER",
        city: "Bursa",
        district: "Nilüfer",
        province: 16,
        address: "Üçevler Mah. İzmir Yolu Cad. No: 275",
        telephone: "0224 555 02 04",
        is_active: false,
    },
    branch(
        NONE,
        "ADA-SEYHAN",
        "Adana",
        "Seyhan",
        1,
        "Yeşiloba Mah. Turhan Cemal Beriker Bul. No: 540",
        "0322 555 02 05",
    ),
    branch(
        NONE,
        "KON-SELCUKLU",
        "Konya",
        "Selçuklu",
        42,
        "Musalla Bağları Mah. Ankara Cad. No: 93",
        "0332 555 02 06",
    ),
    branch(
        FULL,
        "GAZ-SEHITKAMIL",
        "Gaziantep",
        "Şehitkamil",
        27,
        "Sanayi Mah. 60219. Cad. No: 27",
        "0342 555 03 01",
    ),
    branch(
        FULL,
        "TRA-ORTAHISAR",
        "Trabzon",
        "Ortahisar",
        61,
        "Sanayi Mah. Devlet Sahil Yolu Cad. No: 104",
        "0462 555 03 02",
    ),
    branch(
        FULL,
        "ESK-ODUNPAZARI",
        "Eskişehir",
        "Odunpazarı",
        26,
        "75. Yıl Mah. Organize Sanayi Bul. No: 12",
        "0222 555 03 03",
    ),
    branch(
        FULL,
        "KAY-MELIKGAZI",
        "Kayseri",
        "Melikgazi",
        38,
        "Osman Kavuncu Mah. Mehter Cad. No: 41",
        "0352 555 03 04",
    ),
    branch(
        FULL,
        "SAM-ILKADIM",
        "Samsun",
        "İlkadım",
        55,
        "Kılıçdede Mah. Ülkem Sok. No: 22",
        "0362 555 03 05",
    ),
];

/// The branch that does not accept measurements.
pub const INACTIVE_CODE: &str = "BUR-NILUFER";
/// The code that two branches of different organizations have.
pub const AMBIGUOUS_CODE: &str = "IZM-BORNOVA";
/// A branch of an organization for which beta has no grant.
pub const NOT_GRANTED_CODE: &str = "GAZ-SEHITKAMIL";
/// The branch of the report that every start reopens.
pub const OPEN_REPORT_CODE: &str = "IST-KADIKOY";
/// The branches for which beta has a grant, all of one organization.
pub const BETA_CODES: [&str; 2] = ["IST-KADIKOY", "ANK-CANKAYA"];
