//! The three organisations and their branches.

/// An organisation to make.
pub struct OrganizationSpec {
    /// Its name in addresses.
    pub slug: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// How its short name begins its branches' names.
    pub short: &'static str,
    /// `NONE`, `MASKED` or `FULL`.
    pub pii_mode: &'static str,
    /// Its letter in report numbers.
    pub letter: char,
}

/// A branch to make.
pub struct BranchSpec {
    /// Index of its organisation in [`ORGANIZATIONS`].
    pub organization: usize,
    /// Its code.
    pub code: &'static str,
    /// Province.
    pub city: &'static str,
    /// District.
    pub district: &'static str,
    /// The province's number on plates.
    pub province: u8,
    /// Whether it takes measurements.
    pub is_active: bool,
}

/// The organisation whose reports are masked.
pub const MASKED: usize = 0;
/// The organisation whose reports hold no personal data.
pub const NONE: usize = 1;
/// The organisation whose reports are plain.
pub const FULL: usize = 2;

/// One organisation for each privacy mode.
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
) -> BranchSpec {
    BranchSpec {
        organization,
        code,
        city,
        district,
        province,
        is_active: true,
    }
}

/// Eighteen branches; one is closed, and [`AMBIGUOUS_CODE`] names two.
pub const BRANCHES: [BranchSpec; 18] = [
    branch(MASKED, "IST-KADIKOY", "İstanbul", "Kadıköy", 34),
    branch(MASKED, "IST-BESIKTAS", "İstanbul", "Beşiktaş", 34),
    branch(MASKED, "IST-UMRANIYE", "İstanbul", "Ümraniye", 34),
    branch(MASKED, "ANK-CANKAYA", "Ankara", "Çankaya", 6),
    branch(MASKED, "IZM-BORNOVA", "İzmir", "Bornova", 35),
    branch(MASKED, "ANT-MURATPASA", "Antalya", "Muratpaşa", 7),
    branch(MASKED, "KOC-GEBZE", "Kocaeli", "Gebze", 41),
    branch(NONE, "IST-SISLI", "İstanbul", "Şişli", 34),
    branch(NONE, "ANK-YENIMAHALLE", "Ankara", "Yenimahalle", 6),
    branch(NONE, "IZM-BORNOVA", "İzmir", "Bornova", 35),
    BranchSpec {
        organization: NONE,
        code: "BUR-NILUFER",
        city: "Bursa",
        district: "Nilüfer",
        province: 16,
        is_active: false,
    },
    branch(NONE, "ADA-SEYHAN", "Adana", "Seyhan", 1),
    branch(NONE, "KON-SELCUKLU", "Konya", "Selçuklu", 42),
    branch(FULL, "GAZ-SEHITKAMIL", "Gaziantep", "Şehitkamil", 27),
    branch(FULL, "TRA-ORTAHISAR", "Trabzon", "Ortahisar", 61),
    branch(FULL, "ESK-ODUNPAZARI", "Eskişehir", "Odunpazarı", 26),
    branch(FULL, "KAY-MELIKGAZI", "Kayseri", "Melikgazi", 38),
    branch(FULL, "SAM-ILKADIM", "Samsun", "İlkadım", 55),
];

/// The branch that takes no measurements.
pub const INACTIVE_CODE: &str = "BUR-NILUFER";
/// The code of two branches in two organisations.
pub const AMBIGUOUS_CODE: &str = "IZM-BORNOVA";
/// A branch of an organisation that beta is not granted.
pub const NOT_GRANTED_CODE: &str = "GAZ-SEHITKAMIL";
/// The branch of the report that every start opens again.
pub const OPEN_REPORT_CODE: &str = "IST-KADIKOY";
/// The branches of its one organisation that beta is granted.
pub const BETA_CODES: [&str; 2] = ["IST-KADIKOY", "ANK-CANKAYA"];
