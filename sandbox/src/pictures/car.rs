//! Whole cars in the inspection hall.

use super::canvas::Canvas;
use super::canvas::Step::{L, M, Q};
use super::{Body, Paint};

/// A paint's light, own and shadow colour.
fn shades(paint: Paint) -> (u32, u32, u32) {
    match paint {
        Paint::White => (0xf6f7f8, 0xd9dde1, 0x9ba3ab),
        Paint::Grey => (0xa9b0b7, 0x7c858e, 0x4c545c),
        Paint::Black => (0x51565c, 0x2a2e33, 0x121417),
        Paint::Red => (0xd9483f, 0xa8241f, 0x5f1210),
        Paint::Blue => (0x4a79b8, 0x24508f, 0x122c55),
    }
}

/// The hall: wall, window band, lift posts, floor with a yellow line.
fn hall(canvas: &mut Canvas) {
    canvas.shaded_rect(0xcfd6da, 0xb3bcc2, 0.0, 0.0, 640.0, 320.0);
    for window in 0..6 {
        let x = 20.0 + 104.0 * window as f32;
        canvas.shaded_rect(0xeaf3f8, 0xc6dbe6, x, 34.0, 88.0, 58.0);
        canvas.line(0x8b969d, 2.0, &[M(x + 44.0, 34.0), L(x + 44.0, 92.0)]);
    }
    canvas.rect(0x2d5f8a, 0.0, 196.0, 640.0, 12.0);
    canvas.shaded_rect(0x8d9296, 0x64696d, 0.0, 318.0, 640.0, 162.0);
    canvas.line(0xd8b63a, 7.0, &[M(0.0, 452.0), L(640.0, 438.0)]);
    for x in [58.0, 566.0] {
        canvas.shaded_rect(0xd35b27, 0x9c3d15, x, 60.0, 18.0, 278.0);
        canvas.rect(0x3a3e42, x - 8.0, 330.0, 34.0, 12.0);
    }
}

fn wheel(canvas: &mut Canvas, x: f32, y: f32, radius: f32) {
    canvas.circle(0x17191b, x, y, radius);
    canvas.circle(0x3a3d40, x, y, radius * 0.70);
    canvas.circle(0xb9bec3, x, y, radius * 0.64);
    canvas.circle(0x6d7378, x, y, radius * 0.54);
    for spoke in 0..5 {
        let angle = spoke as f32 * std::f32::consts::TAU / 5.0 - 1.2;
        let (sine, cosine) = angle.sin_cos();
        canvas.line(
            0xc9ced2,
            radius * 0.15,
            &[M(x, y), L(x + cosine * radius * 0.56, y + sine * radius * 0.56)],
        );
    }
    canvas.circle(0x8a9096, x, y, radius * 0.14);
}

/// A car from its left side, its nose to the left.
pub fn side(canvas: &mut Canvas, body: Body, paint: Paint) {
    hall(canvas);
    let (light, own, shadow) = shades(paint);
    canvas.ellipse(0x2c2f32, 0.55, 322.0, 402.0, 250.0, 20.0);
    // Height of the roof, of the bonnet's edge, and where the cabin begins and ends.
    let (roof, belt, sill) = match body {
        Body::Sedan => (222.0, 288.0, 384.0),
        Body::Hatchback => (216.0, 286.0, 384.0),
        Body::Suv => (190.0, 270.0, 380.0),
        Body::Van => (170.0, 268.0, 382.0),
        Body::Pickup => (188.0, 268.0, 378.0),
    };
    let nose = [
        M(88.0, sill - 8.0),
        Q(78.0, belt + 44.0, 92.0, belt + 26.0),
        Q(104.0, belt + 6.0, 214.0, belt - 2.0),
    ];
    let cabin: &[_] = match body {
        Body::Sedan => &[
            L(276.0, roof + 8.0),
            Q(300.0, roof, 352.0, roof),
            Q(408.0, roof, 432.0, roof + 14.0),
            L(486.0, belt - 8.0),
            Q(546.0, belt - 8.0, 556.0, belt + 8.0),
        ],
        Body::Hatchback => &[
            L(268.0, roof + 8.0),
            Q(300.0, roof, 372.0, roof),
            Q(468.0, roof + 2.0, 506.0, roof + 16.0),
            L(546.0, belt - 4.0),
        ],
        Body::Suv => &[
            L(262.0, roof + 8.0),
            Q(300.0, roof, 380.0, roof),
            Q(490.0, roof + 2.0, 524.0, roof + 12.0),
            L(556.0, belt - 6.0),
        ],
        Body::Van => &[
            L(250.0, roof + 12.0),
            Q(272.0, roof, 340.0, roof),
            L(540.0, roof + 2.0),
            Q(558.0, roof + 6.0, 560.0, belt),
        ],
        Body::Pickup => &[
            L(256.0, roof + 6.0),
            Q(290.0, roof, 340.0, roof),
            Q(384.0, roof, 396.0, roof + 8.0),
            L(404.0, belt - 6.0),
            L(564.0, belt - 8.0),
        ],
    };
    let tail = [
        Q(572.0, belt + 30.0, 564.0, sill - 12.0),
        Q(560.0, sill, 540.0, sill),
        L(104.0, sill),
    ];
    let outline: Vec<_> = nose.iter().chain(cabin).chain(&tail).copied().collect();
    canvas.shaded((roof, light), (sill, shadow), &outline);
    // The side catches the light above the shoulder line and loses it below.
    canvas.shaded(
        (belt + 6.0, own),
        (sill, shadow),
        &[
            M(92.0, belt + 40.0),
            Q(320.0, belt + 18.0, 566.0, belt + 30.0),
            L(562.0, sill - 2.0),
            L(98.0, sill - 2.0),
        ],
    );
    side_windows(canvas, body, roof, belt);
    let split = if body == Body::Pickup { 322.0 } else { 372.0 };
    for x in [258.0, split, if body == Body::Pickup { 404.0 } else { 468.0 }] {
        canvas.line(
            shadow,
            1.6,
            &[M(x, belt - 2.0), Q(x + 4.0, belt + 50.0, x - 2.0, sill - 12.0)],
        );
    }
    for x in [split - 34.0, split + 58.0] {
        canvas.line(light, 5.0, &[M(x, belt + 18.0), L(x + 20.0, belt + 17.0)]);
    }
    canvas.shape(
        0xf3e9b8,
        &[
            M(90.0, belt + 28.0),
            Q(112.0, belt + 12.0, 138.0, belt + 12.0),
            L(130.0, belt + 30.0),
        ],
    );
    canvas.shape(
        0xb3261f,
        &[
            M(566.0, belt + 12.0),
            L(544.0, belt + 8.0),
            L(548.0, belt + 36.0),
            L(570.0, belt + 34.0),
        ],
    );
    canvas.shape(
        shadow,
        &[
            M(246.0, belt - 10.0),
            Q(240.0, belt - 24.0, 262.0, belt - 20.0),
            L(266.0, belt - 8.0),
        ],
    );
    canvas.rect(0x24272a, 92.0, sill - 10.0, 470.0, 10.0);
    for x in [178.0, 474.0] {
        canvas.circle(0x101112, x, sill - 2.0, 48.0);
        wheel(canvas, x, sill, 41.0);
    }
}

fn side_windows(canvas: &mut Canvas, body: Body, roof: f32, belt: f32) {
    let glass = 0x2f3f4a;
    let (top, low) = (roof + 12.0, belt - 4.0);
    let (front, mid, rear, end) = match body {
        Body::Sedan => (284.0, 366.0, 424.0, 466.0),
        Body::Hatchback => (278.0, 366.0, 478.0, 512.0),
        Body::Suv => (274.0, 366.0, 496.0, 526.0),
        Body::Van => (264.0, 366.0, 458.0, 462.0),
        Body::Pickup => (268.0, 318.0, 380.0, 392.0),
    };
    canvas.shape(
        glass,
        &[M(228.0, low), L(front, top), L(mid - 4.0, top - 2.0), L(mid - 2.0, low)],
    );
    canvas.shape(
        glass,
        &[M(mid + 6.0, low), L(mid + 4.0, top - 2.0), L(rear, top), L(end, low)],
    );
    canvas.veil(
        0xd8ecf5,
        0.28,
        &[M(250.0, low), L(front + 10.0, top), L(front + 34.0, top), L(288.0, low)],
    );
    canvas.veil(
        0xd8ecf5,
        0.22,
        &[
            M(mid + 20.0, low),
            L(mid + 34.0, top),
            L(mid + 50.0, top),
            L(mid + 40.0, low),
        ],
    );
}

/// Body and cabin seen along the car, with shadow, wheels and mirrors.
fn along(canvas: &mut Canvas, paint: Paint) -> (u32, u32, u32) {
    hall(canvas);
    let (light, own, shadow) = shades(paint);
    canvas.ellipse(0x2c2f32, 0.55, 320.0, 416.0, 190.0, 22.0);
    for x in [166.0, 426.0] {
        canvas.shaded_rect(0x2a2c2e, 0x0e0f10, x, 352.0, 48.0, 66.0);
    }
    canvas.shaded(
        (170.0, light),
        (250.0, own),
        &[
            M(196.0, 262.0),
            Q(216.0, 184.0, 236.0, 172.0),
            Q(320.0, 158.0, 404.0, 172.0),
            Q(424.0, 184.0, 444.0, 262.0),
        ],
    );
    canvas.shape(
        0x2b3a44,
        &[
            M(212.0, 256.0),
            L(240.0, 186.0),
            Q(320.0, 174.0, 400.0, 186.0),
            L(428.0, 256.0),
        ],
    );
    canvas.veil(
        0xd8ecf5,
        0.25,
        &[M(250.0, 254.0), L(282.0, 184.0), L(318.0, 181.0), L(300.0, 254.0)],
    );
    for (x, to) in [(178.0, 156.0), (462.0, 484.0)] {
        canvas.shape(
            shadow,
            &[M(x, 250.0), Q(to, 232.0, to, 252.0), L(to, 266.0), L(x, 264.0)],
        );
    }
    canvas.shaded(
        (250.0, light),
        (396.0, shadow),
        &[
            M(176.0, 262.0),
            Q(320.0, 244.0, 464.0, 262.0),
            Q(492.0, 300.0, 486.0, 360.0),
            Q(482.0, 392.0, 456.0, 394.0),
            L(184.0, 394.0),
            Q(158.0, 392.0, 154.0, 360.0),
            Q(148.0, 300.0, 176.0, 262.0),
        ],
    );
    (light, own, shadow)
}

fn blank_plate(canvas: &mut Canvas, y: f32) {
    canvas.rect(0xf4f4f0, 266.0, y, 108.0, 24.0);
    canvas.rect(0x1f3f9a, 266.0, y, 12.0, 24.0);
    // Made unreadable, as the platform does before it shows a photo.
    for blur in 0..8 {
        let x = 284.0 + 11.0 * blur as f32;
        canvas.ellipse(0x85888b, 0.55, x, y + 12.0, 6.5, 7.0);
    }
}

/// A car from the front.
pub fn front(canvas: &mut Canvas, paint: Paint) {
    let (light, _, shadow) = along(canvas, paint);
    canvas.line(shadow, 2.0, &[M(190.0, 288.0), Q(320.0, 266.0, 450.0, 288.0)]);
    canvas.line(light, 2.0, &[M(236.0, 262.0), L(250.0, 282.0)]);
    canvas.line(light, 2.0, &[M(404.0, 262.0), L(390.0, 282.0)]);
    canvas.shape(
        0x17191b,
        &[
            M(238.0, 302.0),
            L(402.0, 302.0),
            Q(396.0, 332.0, 374.0, 334.0),
            L(266.0, 334.0),
            Q(244.0, 332.0, 238.0, 302.0),
        ],
    );
    for bar in 0..4 {
        let y = 308.0 + 7.0 * bar as f32;
        canvas.line(0x8f959a, 1.6, &[M(246.0, y), L(394.0, y)]);
    }
    canvas.circle(0xd5d9dc, 320.0, 318.0, 12.0);
    canvas.circle(0x5a6066, 320.0, 318.0, 8.0);
    for (inner, outer) in [(230.0, 164.0), (410.0, 476.0)] {
        canvas.shape(
            0x30353a,
            &[
                M(inner, 304.0),
                Q((inner + outer) / 2.0, 288.0, outer, 296.0),
                Q(outer, 330.0, inner, 326.0),
            ],
        );
        canvas.circle(0xf7f2d5, (inner + outer) / 2.0, 309.0, 11.0);
        canvas.circle(0xffffff, (inner + outer) / 2.0, 309.0, 5.0);
    }
    canvas.shape(
        0x1c1e20,
        &[M(196.0, 368.0), L(444.0, 368.0), L(430.0, 388.0), L(210.0, 388.0)],
    );
    blank_plate(canvas, 342.0);
}

/// A car from behind.
pub fn rear(canvas: &mut Canvas, paint: Paint) {
    let (light, _, shadow) = along(canvas, paint);
    canvas.line(0x15171a, 3.0, &[M(320.0, 250.0), L(276.0, 206.0)]);
    canvas.line(shadow, 2.0, &[M(186.0, 276.0), Q(320.0, 262.0, 454.0, 276.0)]);
    canvas.line(
        shadow,
        2.0,
        &[M(236.0, 270.0), L(236.0, 352.0), L(404.0, 352.0), L(404.0, 270.0)],
    );
    for (inner, outer) in [(238.0, 160.0), (402.0, 480.0)] {
        canvas.shape(
            0x9d1b18,
            &[M(inner, 288.0), L(outer, 284.0), Q(outer, 320.0, inner, 318.0)],
        );
        canvas.shape(
            0xe8574c,
            &[
                M(inner, 292.0),
                L((inner + outer) / 2.0, 290.0),
                L((inner + outer) / 2.0, 303.0),
                L(inner, 303.0),
            ],
        );
    }
    canvas.line(light, 4.0, &[M(282.0, 296.0), L(358.0, 296.0)]);
    blank_plate(canvas, 308.0);
    canvas.shape(
        0x1c1e20,
        &[M(184.0, 372.0), L(456.0, 372.0), L(446.0, 392.0), L(194.0, 392.0)],
    );
    canvas.ellipse(0x5b6065, 1.0, 420.0, 392.0, 16.0, 7.0);
    canvas.ellipse(0x0b0c0d, 1.0, 420.0, 392.0, 11.0, 4.5);
}
