//! Interiors, instruments and damage.

use super::canvas::Canvas;
use super::canvas::Step::{L, M, Q};

/// Dashboard, steering wheel and seats; variants differ in upholstery.
pub fn interior(canvas: &mut Canvas, variant: u8) {
    let (seat, seam, trim) = match variant {
        0 => (0x3b3e42, 0x6f757b, 0x54585d),
        1 => (0x9d8a6f, 0x6d5d47, 0x7b6c55),
        _ => (0x26303f, 0xa63a32, 0x394456),
    };
    canvas.shaded_rect(0xbcd3df, 0xe4ecef, 0.0, 0.0, 640.0, 190.0);
    canvas.shape(
        0x6f8577,
        &[
            M(0.0, 150.0),
            Q(160.0, 96.0, 330.0, 140.0),
            Q(480.0, 110.0, 640.0, 146.0),
            L(640.0, 200.0),
            L(0.0, 200.0),
        ],
    );
    canvas.shape(
        0x1e2022,
        &[M(0.0, 0.0), L(70.0, 0.0), Q(30.0, 110.0, 26.0, 200.0), L(0.0, 220.0)],
    );
    canvas.shape(
        0x1e2022,
        &[
            M(640.0, 0.0),
            L(572.0, 0.0),
            Q(612.0, 110.0, 616.0, 200.0),
            L(640.0, 220.0),
        ],
    );
    canvas.shape(
        0x191b1d,
        &[
            M(280.0, 22.0),
            Q(322.0, 14.0, 366.0, 22.0),
            L(360.0, 54.0),
            L(288.0, 54.0),
        ],
    );
    canvas.shaded(
        (176.0, 0x44484d),
        (320.0, 0x1d1f22),
        &[
            M(0.0, 196.0),
            Q(320.0, 160.0, 640.0, 196.0),
            L(640.0, 330.0),
            L(0.0, 330.0),
        ],
    );
    canvas.shaded_rect(0x0e2233, 0x0a141d, 270.0, 196.0, 112.0, 66.0);
    canvas.rect(0x2f7fb5, 280.0, 206.0, 60.0, 6.0);
    canvas.rect(0x6ba7cd, 280.0, 222.0, 84.0, 5.0);
    for x in [246.0, 398.0, 586.0] {
        for slat in 0..4 {
            canvas.line(
                0x0c0d0e,
                3.0,
                &[
                    M(x - 14.0, 206.0 + 9.0 * slat as f32),
                    L(x + 14.0, 206.0 + 9.0 * slat as f32),
                ],
            );
        }
    }
    canvas.shaded_rect(0x3a3d41, 0x222426, 268.0, 268.0, 118.0, 150.0);
    for knob in 0..3 {
        canvas.circle(0x131415, 294.0 + 34.0 * knob as f32, 290.0, 12.0);
        canvas.line(
            0xd3d7da,
            2.0,
            &[
                M(294.0 + 34.0 * knob as f32, 290.0),
                L(294.0 + 34.0 * knob as f32, 281.0),
            ],
        );
    }
    canvas.line(0x0f1011, 10.0, &[M(326.0, 400.0), L(332.0, 344.0)]);
    canvas.circle(0x17181a, 333.0, 336.0, 15.0);
    for x in [96.0, 544.0] {
        canvas.shaded(
            (330.0, seat),
            (480.0, 0x17191b),
            &[
                M(x - 104.0, 480.0),
                Q(x - 96.0, 352.0, x, 346.0),
                Q(x + 96.0, 352.0, x + 104.0, 480.0),
            ],
        );
        canvas.line(
            seam,
            3.0,
            &[
                M(x - 52.0, 480.0),
                Q(x - 46.0, 392.0, x, 372.0),
                Q(x + 46.0, 392.0, x + 52.0, 480.0),
            ],
        );
    }
    canvas.rect(trim, 400.0, 250.0, 240.0, 8.0);
    for (radius, color) in [(96.0, 0x0d0e0f), (90.0, 0x2b2d30), (78.0, 0x1d1f22)] {
        canvas.ellipse(color, 1.0, 140.0, 270.0, radius, radius * 0.94);
    }
    canvas.ellipse(0x34383c, 1.0, 140.0, 262.0, 76.0, 66.0);
    canvas.shaded(
        (216.0, 0x191b1d),
        (262.0, 0x2b2e31),
        &[M(72.0, 262.0), Q(140.0, 190.0, 208.0, 262.0)],
    );
    canvas.shape(
        0x17181a,
        &[
            M(58.0, 262.0),
            L(222.0, 262.0),
            L(206.0, 296.0),
            L(164.0, 300.0),
            L(158.0, 350.0),
            L(122.0, 350.0),
            L(116.0, 300.0),
            L(74.0, 296.0),
        ],
    );
    canvas.ellipse(0x2c2f33, 1.0, 140.0, 282.0, 34.0, 28.0);
    canvas.circle(0xc6cacd, 140.0, 280.0, 9.0);
}

/// The seven segments of a digit, from the top clockwise and then the middle.
const SEGMENTS: [u8; 10] = [0x3f, 0x06, 0x5b, 0x4f, 0x66, 0x6d, 0x7d, 0x07, 0x7f, 0x6f];

fn digit(canvas: &mut Canvas, value: usize, x: f32, y: f32, size: f32, color: u32) {
    let (width, half) = (size * 0.55, size / 2.0);
    let ends = [
        (0.0, 0.0, width, 0.0),
        (width, 0.0, width, half),
        (width, half, width, size),
        (0.0, size, width, size),
        (0.0, half, 0.0, size),
        (0.0, 0.0, 0.0, half),
        (0.0, half, width, half),
    ];
    for (segment, (x1, y1, x2, y2)) in ends.into_iter().enumerate() {
        if SEGMENTS[value % 10] >> segment & 1 == 1 {
            let inset = size * 0.07;
            let (dx, dy) = if y1 == y2 { (inset, 0.0) } else { (0.0, inset) };
            canvas.line(
                color,
                size * 0.11,
                &[M(x + x1 + dx, y + y1 + dy), L(x + x2 - dx, y + y2 - dy)],
            );
        }
    }
}

fn gauge(canvas: &mut Canvas, x: f32, y: f32, radius: f32, needle: f32) {
    canvas.circle(0x2a2d31, x, y, radius + 6.0);
    canvas.circle(0x0a0b0d, x, y, radius);
    let at = |part: f32, length: f32| {
        let (sine, cosine) = (2.4 + part * 4.6).sin_cos();
        (x + cosine * radius * length, y + sine * radius * length)
    };
    for tick in 0..=24 {
        let part = tick as f32 / 24.0;
        let color = if tick > 20 { 0xd33a2f } else { 0xe6e9eb };
        let ((x1, y1), (x2, y2)) = (at(part, if tick % 3 == 0 { 0.76 } else { 0.84 }), at(part, 0.93));
        canvas.line(color, if tick % 3 == 0 { 4.0 } else { 1.8 }, &[M(x1, y1), L(x2, y2)]);
    }
    let (x2, y2) = at(needle, 0.8);
    canvas.line(0xf0512f, 5.0, &[M(x, y), L(x2, y2)]);
    canvas.circle(0x3b3f44, x, y, radius * 0.13);
}

/// The instrument cluster; its display shows `km`.
pub fn odometer(canvas: &mut Canvas, km: i32) {
    canvas.shaded_rect(0x35383c, 0x151618, 0.0, 0.0, 640.0, 480.0);
    canvas.shaded(
        (60.0, 0x1c1e21),
        (440.0, 0x08090a),
        &[M(20.0, 420.0), Q(40.0, 60.0, 320.0, 60.0), Q(600.0, 60.0, 620.0, 420.0)],
    );
    gauge(canvas, 172.0, 236.0, 124.0, 0.12);
    gauge(canvas, 468.0, 236.0, 124.0, 0.0);
    for (light, color) in [0x2fae4e, 0xe0a21f, 0xd33a2f, 0x2f7fd3].into_iter().enumerate() {
        canvas.circle(color, 284.0 + 24.0 * light as f32, 130.0, 6.0);
    }
    canvas.shaded_rect(0x102a38, 0x0b1d27, 176.0, 344.0, 288.0, 76.0);
    let text = format!("{km:06}");
    for (place, value) in text.bytes().enumerate() {
        digit(
            canvas,
            usize::from(value - b'0'),
            198.0 + 34.0 * place as f32,
            362.0,
            40.0,
            0x9fe4ff,
        );
    }
    // "km": the stems and arcs of two letters.
    let pen = 0x9fe4ff;
    canvas.line(pen, 3.5, &[M(410.0, 376.0), L(410.0, 402.0)]);
    canvas.line(pen, 3.5, &[M(422.0, 386.0), L(411.0, 395.0), L(423.0, 402.0)]);
    canvas.line(
        pen,
        3.5,
        &[
            M(430.0, 402.0),
            L(430.0, 388.0),
            Q(437.0, 382.0, 438.0, 390.0),
            L(438.0, 402.0),
        ],
    );
    canvas.line(
        pen,
        3.5,
        &[M(438.0, 390.0), Q(446.0, 382.0, 447.0, 390.0), L(447.0, 402.0)],
    );
    canvas.veil(
        0xffffff,
        0.06,
        &[M(60.0, 60.0), L(240.0, 60.0), L(120.0, 440.0), L(0.0, 440.0)],
    );
}

/// A dent or scratches on a panel close up; variants differ in paint and in damage.
pub fn damage(canvas: &mut Canvas, variant: u8) {
    let (light, dark) = match variant {
        0 => (0xe9ecee, 0xa7aeb4),
        1 => (0x9aa2a9, 0x596067),
        2 => (0xc93d36, 0x6e1714),
        3 => (0x44484d, 0x131517),
        _ => (0x4a79b8, 0x17386b),
    };
    canvas.shaded_rect(light, dark, 0.0, 0.0, 640.0, 480.0);
    canvas.veil(
        0xffffff,
        0.30,
        &[
            M(0.0, 70.0),
            Q(320.0, 20.0, 640.0, 84.0),
            L(640.0, 120.0),
            Q(320.0, 60.0, 0.0, 112.0),
        ],
    );
    canvas.line(0x1b1d1f, 4.0, &[M(0.0, 330.0), Q(320.0, 300.0, 640.0, 338.0)]);
    canvas.line(light, 2.0, &[M(0.0, 336.0), Q(320.0, 306.0, 640.0, 344.0)]);
    if variant.is_multiple_of(2) {
        for ring in 0..10 {
            let size = 118.0 - 11.0 * ring as f32;
            canvas.ellipse(
                0x000000,
                0.05,
                300.0 + ring as f32,
                214.0 + ring as f32,
                size * 1.35,
                size * 0.72,
            );
        }
        canvas.veil(
            0xffffff,
            0.35,
            &[
                M(196.0, 244.0),
                Q(300.0, 300.0, 404.0, 240.0),
                Q(304.0, 276.0, 196.0, 244.0),
            ],
        );
    }
    let scratches = 5 + usize::from(variant) * 5;
    for _ in 0..scratches {
        let (x, y) = (150.0 + canvas.random() * 300.0, 150.0 + canvas.random() * 130.0);
        let (length, drop) = (30.0 + canvas.random() * 130.0, canvas.random() * 30.0 - 8.0);
        let width = 0.8 + canvas.random() * 2.4;
        let bare = if canvas.random() > 0.5 { 0xd9d6cf } else { 0x6a5a4a };
        canvas.line(
            bare,
            width,
            &[M(x, y), Q(x + length / 2.0, y + drop - 6.0, x + length, y + drop)],
        );
    }
    for _ in 0..60 {
        let (x, y) = (canvas.random() * 640.0, canvas.random() * 480.0);
        canvas.ellipse(0x5d4f3f, 0.35, x, y, 1.4, 1.2);
    }
    // The gauge's magnetic scale beside the damage.
    canvas.rect(0xf0c931, 470.0, 392.0, 150.0, 26.0);
    for tick in 0..15 {
        let height = if tick % 5 == 0 { 16.0 } else { 9.0 };
        canvas.line(
            0x202020,
            1.6,
            &[
                M(476.0 + 10.0 * tick as f32, 392.0),
                L(476.0 + 10.0 * tick as f32, 392.0 + height),
            ],
        );
    }
}
