//! The engine bay and the underbody on the lift.

use super::canvas::Canvas;
use super::canvas::Step::{L, M, Q};

/// The engine bay from above; variants differ in cover and age.
pub fn engine(canvas: &mut Canvas, variant: u8) {
    let (cover, badge, body) = match variant {
        0 => (0x2b2e32, 0xc9ced2, 0xb9c0c6),
        1 => (0x3d4247, 0xb3261f, 0x8c1f1b),
        _ => (0x23282f, 0x3f7fbf, 0x24508f),
    };
    canvas.shaded_rect(body, 0x3c4247, 0.0, 0.0, 640.0, 480.0);
    canvas.shaded(
        (40.0, 0x1a1c1e),
        (470.0, 0x2f3337),
        &[
            M(40.0, 70.0),
            Q(320.0, 30.0, 600.0, 70.0),
            L(628.0, 440.0),
            Q(320.0, 476.0, 12.0, 440.0),
        ],
    );
    for x in [92.0, 548.0] {
        canvas.circle(0x4b5157, x, 132.0, 42.0);
        canvas.circle(0x23262a, x, 132.0, 27.0);
        for bolt in 0..3 {
            let (sine, cosine) = (bolt as f32 * 2.1).sin_cos();
            canvas.circle(0xb9bec2, x + cosine * 34.0, 132.0 + sine * 34.0, 4.0);
        }
    }
    canvas.shaded(
        (110.0, cover),
        (350.0, 0x101113),
        &[
            M(200.0, 116.0),
            Q(310.0, 100.0, 420.0, 116.0),
            L(432.0, 340.0),
            Q(310.0, 358.0, 188.0, 340.0),
        ],
    );
    for rib in 0..4 {
        let x = 228.0 + 52.0 * rib as f32;
        canvas.line(0x565c62, 6.0, &[M(x, 140.0), Q(x + 4.0, 230.0, x - 2.0, 322.0)]);
    }
    canvas.rect(badge, 262.0, 214.0, 96.0, 26.0);
    canvas.rect(cover, 268.0, 220.0, 84.0, 14.0);
    canvas.circle(0xe2b52c, 396.0, 306.0, 15.0);
    canvas.circle(0x2a2a20, 396.0, 306.0, 7.0);
    // Battery with its poles and cables.
    canvas.shaded_rect(0x34383d, 0x121315, 470.0, 214.0, 118.0, 92.0);
    canvas.rect(0xe6e6e0, 482.0, 250.0, 94.0, 38.0);
    canvas.rect(0x2e8b57, 482.0, 250.0, 94.0, 9.0);
    canvas.circle(0xc4311f, 494.0, 230.0, 10.0);
    canvas.circle(0x17181a, 566.0, 230.0, 10.0);
    canvas.line(0xc4311f, 7.0, &[M(494.0, 230.0), Q(456.0, 190.0, 430.0, 204.0)]);
    canvas.line(0x111213, 7.0, &[M(566.0, 230.0), Q(604.0, 190.0, 596.0, 140.0)]);
    // Coolant and washer tanks.
    canvas.shaded_rect(0xe9e4d2, 0xc9bfa0, 52.0, 226.0, 92.0, 84.0);
    canvas.rect(0xd16c8d, 56.0, 268.0, 84.0, 38.0);
    canvas.circle(0x1a1b1d, 98.0, 226.0, 19.0);
    canvas.circle(0x2f62a8, 92.0, 366.0, 24.0);
    canvas.circle(0x1d3e6d, 92.0, 366.0, 15.0);
    // Intake, hoses and the belt's side.
    canvas.line(0x0e0f10, 30.0, &[M(432.0, 150.0), Q(500.0, 150.0, 512.0, 190.0)]);
    canvas.line(0x26292c, 22.0, &[M(144.0, 200.0), Q(176.0, 160.0, 204.0, 166.0)]);
    canvas.line(
        0x0f1011,
        16.0,
        &[
            M(140.0, 340.0),
            Q(240.0, 420.0, 420.0, 392.0),
            Q(500.0, 380.0, 520.0, 330.0),
        ],
    );
    canvas.shaded_rect(0x50565b, 0x24272a, 150.0, 424.0, 340.0, 30.0);
    for fin in 0..33 {
        canvas.line(
            0x15171a,
            2.0,
            &[M(156.0 + 10.0 * fin as f32, 426.0), L(156.0 + 10.0 * fin as f32, 452.0)],
        );
    }
    for _ in 0..140 {
        let (x, y) = (60.0 + canvas.random() * 520.0, 90.0 + canvas.random() * 340.0);
        canvas.ellipse(0xa08f72, 0.22, x, y, 2.2, 1.6);
    }
}

/// The underbody from below; variants differ in rust and leaks.
pub fn underbody(canvas: &mut Canvas, variant: u8) {
    canvas.shaded_rect(0x5a5f63, 0x34383b, 0.0, 0.0, 640.0, 480.0);
    for x in [120.0, 520.0] {
        canvas.shaded(
            (0.0, 0x3f4448),
            (480.0, 0x25282b),
            &[
                M(x - 26.0, 0.0),
                L(x + 26.0, 0.0),
                L(x + 38.0, 480.0),
                L(x - 38.0, 480.0),
            ],
        );
        for hole in 0..7 {
            canvas.ellipse(0x121314, 1.0, x, 40.0 + 66.0 * hole as f32, 9.0, 13.0);
        }
    }
    canvas.shaded(
        (40.0, 0x8f979d),
        (190.0, 0x42484d),
        &[M(206.0, 46.0), L(434.0, 46.0), L(456.0, 178.0), L(184.0, 178.0)],
    );
    for rib in 0..6 {
        let x = 226.0 + 38.0 * rib as f32;
        canvas.line(0x363b3f, 5.0, &[M(x, 58.0), L(x, 168.0)]);
    }
    canvas.circle(0x1c1e20, 408.0, 150.0, 12.0);
    canvas.circle(0xa9b0b5, 408.0, 150.0, 6.0);
    // Axles, arms and wheels.
    for (y, joint) in [(120.0, 0x8a9197), (398.0, 0x747b81)] {
        canvas.line(joint, 14.0, &[M(28.0, y), L(612.0, y + 4.0)]);
        for (x, inner) in [(34.0, 150.0), (606.0, 490.0)] {
            canvas.line(0x2a2d30, 18.0, &[M(x, y + 22.0), L(inner, y + 54.0)]);
            canvas.circle(0x141516, inner, y + 54.0, 13.0);
            canvas.ellipse(0x101112, 1.0, x, y, 30.0, 66.0);
            for groove in 0..7 {
                let top = y - 48.0 + 15.0 * groove as f32;
                canvas.line(0x2d3033, 3.0, &[M(x - 22.0, top), L(x + 22.0, top + 5.0)]);
            }
        }
    }
    // Exhaust with its silencers, and the fuel line.
    canvas.line(
        0xa19a90,
        17.0,
        &[M(330.0, 180.0), Q(352.0, 240.0, 318.0, 290.0), L(318.0, 480.0)],
    );
    canvas.ellipse(0x8d867c, 1.0, 338.0, 236.0, 27.0, 44.0);
    canvas.ellipse(0xb5aea3, 1.0, 332.0, 228.0, 9.0, 28.0);
    canvas.shaded_rect(0x9a948a, 0x5c5750, 262.0, 410.0, 112.0, 58.0);
    canvas.line(0x1f7a4a, 5.0, &[M(230.0, 178.0), Q(218.0, 320.0, 232.0, 480.0)]);
    let (color, specks) = match variant {
        0 => (0x8a4a22, 70),
        1 => (0x8a4a22, 260),
        _ => (0x0c0c0a, 120),
    };
    for _ in 0..specks {
        let (x, y) = (40.0 + canvas.random() * 560.0, canvas.random() * 480.0);
        let size = 1.0 + canvas.random() * 5.0;
        canvas.ellipse(color, 0.4, x, y, size, size * 0.8);
    }
    if variant == 2 {
        canvas.veil(
            0x0b0a08,
            0.75,
            &[
                M(388.0, 150.0),
                Q(372.0, 210.0, 392.0, 252.0),
                Q(418.0, 262.0, 424.0, 214.0),
                Q(430.0, 176.0, 420.0, 152.0),
            ],
        );
    }
    // The inspection lamp.
    for ring in 0..8 {
        let size = 1.0 - 0.09 * ring as f32;
        canvas.ellipse(0xfff6d8, 0.028, 320.0, 250.0, 330.0 * size, 230.0 * size);
    }
}
