//! Papers: kinds that are never shown to partners. What stands on them is unreadable lines.

use super::canvas::Canvas;
use super::canvas::Step::{L, M, Q};

fn desk(canvas: &mut Canvas) {
    canvas.shaded_rect(0x8a6a4a, 0x6b4f35, 0.0, 0.0, 640.0, 480.0);
    for grain in 0..16 {
        let y = 16.0 + 30.0 * grain as f32;
        canvas.line(0x5d442d, 1.5, &[M(0.0, y), Q(320.0, y + 12.0, 640.0, y - 4.0)]);
    }
}

fn words(canvas: &mut Canvas, x: f32, y: f32, width: f32, height: f32) {
    let mut at = x;
    while at < x + width {
        let word = (14.0 + canvas.random() * 46.0).min(x + width - at);
        if word > 3.0 {
            canvas.rect(0x4f565d, at, y, word, height);
        }
        at += word + 7.0;
    }
}

/// A registration document on a desk.
pub fn registration(canvas: &mut Canvas) {
    desk(canvas);
    canvas.veil(
        0x000000,
        0.35,
        &[M(70.0, 66.0), L(590.0, 54.0), L(600.0, 430.0), L(78.0, 440.0)],
    );
    canvas.shaded(
        (50.0, 0xdfeef4),
        (430.0, 0xf4e3e6),
        &[M(60.0, 56.0), L(580.0, 44.0), L(590.0, 418.0), L(68.0, 430.0)],
    );
    canvas.rect(0xb8243a, 84.0, 74.0, 60.0, 40.0);
    canvas.circle(0xf5f5f5, 110.0, 94.0, 13.0);
    canvas.circle(0xb8243a, 114.0, 94.0, 10.0);
    canvas.circle(0xf5f5f5, 124.0, 94.0, 4.0);
    words(canvas, 164.0, 78.0, 300.0, 13.0);
    words(canvas, 164.0, 100.0, 210.0, 8.0);
    for row in 0..8 {
        let y = 140.0 + 32.0 * row as f32;
        canvas.line(0x9fb4c0, 1.5, &[M(86.0, y + 22.0), L(560.0, y + 20.0)]);
        words(canvas, 88.0, y, 90.0, 7.0);
        words(canvas, 206.0, y - 1.0, 150.0, 10.0);
        words(canvas, 392.0, y, 150.0, 8.0);
    }
    canvas.line(
        0x1e3f8f,
        3.0,
        &[
            M(410.0, 402.0),
            Q(440.0, 366.0, 456.0, 400.0),
            Q(474.0, 420.0, 530.0, 384.0),
        ],
    );
}

/// A page of a third party's archive.
pub fn archive(canvas: &mut Canvas) {
    desk(canvas);
    canvas.veil(
        0x000000,
        0.35,
        &[M(150.0, 20.0), L(500.0, 20.0), L(508.0, 474.0), L(158.0, 474.0)],
    );
    canvas.shaded_rect(0xfdfdfb, 0xeeeeea, 142.0, 12.0, 350.0, 456.0);
    canvas.rect(0x20507a, 142.0, 12.0, 350.0, 44.0);
    canvas.circle(0xf2b632, 172.0, 34.0, 13.0);
    canvas.rect(0xf4f6f8, 196.0, 28.0, 170.0, 12.0);
    for row in 0..9 {
        words(canvas, 164.0, 80.0 + 17.0 * row as f32, 300.0, 7.0);
    }
    for row in 0..6 {
        let y = 250.0 + 26.0 * row as f32;
        canvas.rect(if row % 2 == 0 { 0xe1e9ef } else { 0xf6f8fa }, 164.0, y, 306.0, 26.0);
        words(canvas, 172.0, y + 9.0, 80.0, 7.0);
        words(canvas, 276.0, y + 9.0, 70.0, 7.0);
        canvas.rect(0x4f565d, 408.0, y + 9.0, 46.0, 7.0);
    }
    words(canvas, 164.0, 430.0, 180.0, 6.0);
}
