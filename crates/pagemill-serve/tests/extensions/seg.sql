-- Texts.
select '1'::seg, '1.0'::seg, '1.00'::seg, '-1'::seg, '+1'::seg, '0'::seg, '0.0'::seg, '0.00'::seg, '-0.0'::seg
select '1..2'::seg, '1...2'::seg, '1 .. 2'::seg, '1.50 .. 2.5'::seg, '1 ..'::seg, '1 ...'::seg, '.. 1'::seg, '...1'::seg
select '5 (+-) 0.3'::seg, '5(+-)0.30'::seg, '5.00 ''+-'' 0.1'::seg, '~5 (+-) 1'::seg, '1e6 (+-) 1'::seg, '3e38 (+-) 3e38'::seg, '1(+-)1'::seg
select '12345'::seg, '12345.6'::seg, '123456'::seg, '1234567'::seg, '1234567890'::seg, '100'::seg, '100.0'::seg, '1e2'::seg, '10000'::seg, '100000'::seg
select '0.1'::seg, '0.01'::seg, '0.00012'::seg, '0.000012'::seg, '1e-5'::seg, '1e-45'::seg, '3.4e38'::seg, '1.0e5'::seg, '1E+4'::seg, '-12.50e-1'::seg
select '1.2345678'::seg, '9.9999999'::seg, '0.000000'::seg, '000.100'::seg, '007'::seg
select '1 .. 1'::seg, '1 .. 1.0'::seg, '1.0 .. 1'::seg, '<1 .. 1'::seg
select ''::seg
select 'abc'::seg
select '1.'::seg
select '.5'::seg
select '1 2'::seg
select '1 .. 2 .. 3'::seg
select '<> 1'::seg
select '1e'::seg
select '..'::seg
select '1 +- 2'::seg
select '2 .. 1'::seg
select '2 .. 1 x'::seg
select '1.5 .. -1e10'::seg
select '1e50'::seg
select '1e50 x'::seg
select '1e-50'::seg
select 'inf'::seg
select null::seg
-- Ends and measures.
select seg_lower('1.5 .. 2'), seg_upper('1.5 .. 2'), seg_center('1.5 .. 2'), seg_size('1.5 .. 2')
select seg_lower('.. 2'), seg_upper('1 ..'), seg_center('1 ..'), seg_center('.. 2'), seg_size('.. 2'), seg_size('1')
select seg_lower('0.1'), seg_center('0.1 .. 0.2'), seg_size('0.1 .. 0.3'), seg_size('-3e38 .. 3e38'), seg_center('-3e38 .. 3e38'), seg_lower(null)
select seg_union('1 .. 2', '1.50 .. 3'), seg_union('1', '~1.00'), seg_union('.. 1', '2 ..'), seg_union('<1', '5'), seg_union('1', null)
-- Relations.
select '1 .. 3'::seg @> '2', '1 .. 3'::seg @> '2 .. 4', '2'::seg <@ '1 .. 3', '1 .. 3'::seg && '3 .. 4', '1 .. 3'::seg && '4', '1 ..'::seg @> '5', null::seg @> '1'
select '1'::seg << '2', '1 .. 2'::seg << '2', '3'::seg >> '2', '1 .. 3'::seg &< '2 .. 3', '1 .. 4'::seg &< '2 .. 3', '2'::seg &> '1 .. 3', '0'::seg &> '1 .. 3'
select seg_contains('1 .. 3', '2'), seg_contained('1 .. 3', '2'), seg_overlap('1 .. 3', '2'), seg_left('1', '2'), seg_over_left('1', '2'), seg_right('1', '2'), seg_over_right('1', '2')
select '1'::seg = '1', '1'::seg = '1.0', '1'::seg <> '1.0', '~1'::seg = '1', '0'::seg = '-0', '1 .. 2'::seg = '1...2'
select '1'::seg < '1.0', '<1'::seg < '1', '>1'::seg > '1', '~1'::seg < '1', '1 .. 2'::seg < '1 ..', '.. 2'::seg < '-3e38', '1'::seg <= '1', '1'::seg >= '1', '1 .. 2'::seg > '1 .. 2.0'
select seg_same('1', '1'), seg_different('1', '1'), seg_lt('1', '2'), seg_le('1', '2'), seg_gt('1', '2'), seg_ge('1', '2')
select '1 .. 2'::seg::text, '1'::seg || 'x'
-- A table.
select id, s, seg_lower(s), seg_upper(s), seg_center(s), seg_size(s) from segs order by id
select id, s from segs order by s, id
select id, s from segs order by s desc nulls last, id
select distinct s from segs order by s
select s, count(*) from segs group by s order by s
select count(distinct s) from segs
select id from segs where s = '1' order by id
select id from segs where s < '1 .. 2' order by id
select id from segs where s >= '1 .. 2' order by id
select id from segs where s && '1.5 .. 1.7' order by id
select id from segs where s @> '1.5' order by id
select a.id, b.id from segs a join segs b on a.s = b.s and a.id < b.id order by 1, 2
select a.id, b.id from segs a join segs b on a.s << b.s order by 1, 2
select id, seg_union(s, '2.50'), seg_inter(s, '0.5 .. 1.5') from segs where id <> 5 order by id
select id, rank() over (order by s) from segs order by id
select array_agg(s order by s, id) from segs
select id from segs_indexed where s = '3 .. 5' order by id
select id from segs_indexed where s <@ '3 .. 6' order by id
select s, count(*) from segs_indexed group by s having count(*) > 3 order by s
