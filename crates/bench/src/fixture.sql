-- Copies the sandbox's reports, so that statements run on a realistic number of rows. The IDs of the copies are computed from a
-- number, so that pgbench can draw them at random.
CREATE SCHEMA bench;
CREATE FUNCTION bench.key(kind integer, number bigint) RETURNS uuid LANGUAGE sql IMMUTABLE
    RETURN (lpad(to_hex(kind), 8, '0') || lpad(to_hex(number), 24, '0'))::uuid;

CREATE TABLE bench.sources AS
SELECT row_number() OVER (ORDER BY i.id) - 1 AS number, i.id FROM inspections i
WHERE i.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED') AND EXISTS (SELECT FROM inspection_forms f WHERE f.inspection_id = i.id)
  AND EXISTS (SELECT FROM photos p WHERE p.inspection_id = i.id AND p.show_in_report AND p.kind = 'EXTERIOR');
CREATE TABLE bench.copies AS
SELECT n AS number, s.id AS source, now() - random() * interval '2 years' AS created_at
FROM generate_series(0, 19999) n JOIN bench.sources s ON s.number = n % (SELECT count(*) FROM bench.sources);

INSERT INTO vehicles
SELECT bench.key(3, c.number), v.plate, v.vin, v.brand, v.model, v.year, v.type, v.fuel_type, v.transmission, v.color,
       v.mileage_km, v.factory_power_hp
FROM bench.copies c JOIN inspections i ON i.id = c.source JOIN vehicles v ON v.id = i.vehicle_id;
INSERT INTO inspections (id, report_number, organization_id, branch_id, vehicle_id, status, plate, package_name,
    package_base_price, base_price, discount_percent, discount_name, final_price, payment_type, currency, snapshot_vin,
    snapshot_mileage_km, summary, recommendation, overall_score, published_at, created_at)
SELECT bench.key(4, c.number), 'B-' || c.number, i.organization_id, i.branch_id, bench.key(3, c.number), i.status, i.plate,
       i.package_name, i.package_base_price, i.base_price, i.discount_percent, i.discount_name, i.final_price,
       i.payment_type, i.currency, i.snapshot_vin, i.snapshot_mileage_km, i.summary, i.recommendation, i.overall_score,
       c.created_at + interval '1 hour', c.created_at
FROM bench.copies c JOIN inspections i ON i.id = c.source;

-- Forms and photos only for the first reports, because there are many of them.
CREATE TABLE bench.forms AS
SELECT bench.key(5, row_number() OVER ()) AS id, c.number, f.id AS source, f.organization_id, f.template_id, f.general_note
FROM bench.copies c JOIN inspection_forms f ON f.inspection_id = c.source WHERE c.number < 2000;
INSERT INTO inspection_forms SELECT id, organization_id, bench.key(4, number), template_id, general_note FROM bench.forms;
INSERT INTO inspection_form_answers
SELECT f.id, a.point_id, a.organization_id, a.status_code, a.status_label, a.severity, a.numeric_value, a.note, a.by_device,
       a.measurement_id, a.written_by, a.written_at
FROM bench.forms f JOIN inspection_form_answers a ON a.inspection_form_id = f.source;
INSERT INTO photos
SELECT bench.key(6, row_number() OVER ()), p.organization_id, bench.key(4, c.number), p.position, p.kind, p.point_code, p.caption,
       p.object_key, p.thumb_object_key, p.mime_type, p.size_bytes, p.show_in_report, p.created_at
FROM bench.copies c JOIN photos p ON p.inspection_id = c.source WHERE c.number < 2000;

-- The branch to which measurements are sent, of the organization with the most thresholds.
CREATE TABLE bench.station AS
SELECT b.id, b.organization_id, b.code, b.code_folded FROM branches b
WHERE b.is_active AND (SELECT count(*) FROM branches other WHERE other.code_folded = b.code_folded) = 1
ORDER BY (SELECT count(*) FROM thresholds t WHERE t.organization_id = b.organization_id) DESC, b.code LIMIT 1;

-- Open reports of that branch: a hundred, and one to which all clients send at once.
INSERT INTO vehicles
SELECT bench.key(7, n), '34BNC' || n, 'WVWZZZ1JZ3W' || 386000 + n, 'Fiat', 'Egea', 2021, 'SEDAN', 'DIESEL', 'MANUAL',
       'Beyaz', 90000, 100
FROM generate_series(100, 200) n;
INSERT INTO inspections (id, report_number, organization_id, branch_id, vehicle_id, status, plate, package_name,
    package_base_price, base_price, final_price, payment_type, snapshot_vin, snapshot_mileage_km, created_at)
SELECT bench.key(8, n), 'O-' || n, s.organization_id, s.id, bench.key(7, n), 'DRAFT', '34BNC' || n, 'Tam', 3000, 3000, 2700,
       'CARD', 'WVWZZZ1JZ3W' || 386000 + n, 90000, now()
FROM bench.station s, generate_series(100, 200) n;

-- Their test-line forms, so that no measurement has to add one, and all of them send the same statements.
INSERT INTO inspection_forms (id, organization_id, inspection_id, template_id)
SELECT bench.key(10, n), s.organization_id, bench.key(8, n), t.id
FROM bench.station s JOIN form_templates t ON t.organization_id = s.organization_id AND t.is_test_line, generate_series(100, 200) n;

-- The table of the cheapest durable write.
CREATE TABLE bench.minimal (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, client integer NOT NULL);
