import React from 'react';
import { registerRuntimePanelPlugin } from '@grafana/scenes';
import { PanelPlugin, FieldType, getFieldDisplayValues, getFieldDisplayName, VizOrientation, FieldColorModeId, renderMarkdown, formattedValueToString, getDisplayValueAlignmentFactors, reduceField } from '@grafana/data';
import { TimeSeries, BigValue, BarGauge, Table, VizRepeater, VizLegend, useTheme2 } from '@grafana/ui';

const CUSTOM = ['drawStyle','lineInterpolation','lineWidth','fillOpacity','gradientMode','lineStyle','spanNulls','showPoints','pointSize','stacking','barAlignment','barWidthFactor','axisPlacement','axisLabel','axisWidth','axisSoftMin','axisSoftMax','axisGridShow','axisColorMode','axisBorderShow','axisCenteredZero','scaleDistribution','hideFrom','thresholdsStyle','transform','fillBelowTo','insertNulls','align','cellOptions','width','minWidth','filterable','hidden','inspect','displayMode'];
const DEF = { drawStyle: 'line', lineInterpolation: 'linear', lineWidth: 1, fillOpacity: 0, gradientMode: 'none', spanNulls: false, showPoints: 'auto', pointSize: 5, axisPlacement: 'auto', axisLabel: '', axisColorMode: 'text', axisGridShow: undefined, scaleDistribution: { type: 'linear' }, hideFrom: { viz: false, legend: false, tooltip: false }, thresholdsStyle: { mode: 'off' }, stacking: { mode: 'none', group: 'A' }, barAlignment: 0, barWidthFactor: 0.6 };
const nil = () => null;
const custom = (ids, defs = {}) => (b) => { for (const id of ids) b.addCustomEditor({ id, path: id, name: id, editor: nil, override: nil, defaultValue: defs[id], process: (v) => v, shouldApply: () => true, settings: {} }); };
const reg = (pluginId, comp, fc) => { const plugin = new PanelPlugin(comp); plugin.useFieldConfig(fc); registerRuntimePanelPlugin({ pluginId, plugin }); };
const err = (data) => data.errors?.[0]?.message || data.error?.message;
const NoData = ({ data, fieldConfig }) => <div data-testid={err(data) ? 'panel-error' : 'panel-nodata'} style={{ display: 'grid', placeItems: 'center', height: '100%', color: err(data) ? 'red' : 'gray' }}>{err(data) || fieldConfig?.defaults?.noValue || 'No data'}</div>;
const wantsTime = (f) => f.fields.some((x) => x.type === FieldType.time) && f.fields.some((x) => x.type === FieldType.number);

function TS({ data, fieldConfig, timeRange, timeZone, width, height, options }) {
  const frames = data.series.filter(wantsTime).map((f) => ({ ...f, fields: f.fields.map((x) => x.type === FieldType.time ? { ...x, config: { ...x.config, custom: { ...x.config.custom, axisLabel: '' } } } : x) }));
  if (!frames.length) return <NoData data={data} fieldConfig={fieldConfig} />;
  return <TimeSeries frames={frames} structureRev={data.structureRev} timeRange={timeRange} timeZone={timeZone === 'browser' ? 'utc' : timeZone} width={width} height={height} legend={options.legend ?? { showLegend: true, displayMode: 'list', placement: 'bottom', calcs: [] }} options={options} />;
}
function values(props, theme, sparkline) {
  const { data, options, fieldConfig, replaceVariables, timeZone } = props;
  return getFieldDisplayValues({ fieldConfig, reduceOptions: { calcs: ['lastNotNull'], values: false, ...(options.reduceOptions ?? {}) }, replaceVariables, theme, data: data.series, sparkline, timeZone });
}
function Stat(props) {
  const theme = useTheme2(); const { width, height, options, data } = props;
  if (err(data)) return <NoData data={data} />;
  const vs = values(props, theme, options.graphMode !== 'none');
  const align = getDisplayValueAlignmentFactors(vs);
  return <VizRepeater getValues={() => vs} getAlignmentFactors={() => align} source={data} width={width} height={height} renderCounter={props.renderCounter} itemSpacing={3} orientation={options.orientation ?? VizOrientation.Auto}
    renderValue={({ value, width, height, alignmentFactors, count }) => <BigValue value={value.display} count={count} sparkline={value.sparkline} colorMode={options.colorMode ?? 'value'} graphMode={options.graphMode ?? 'area'} justifyMode={options.justifyMode ?? 'auto'} textMode={options.textMode ?? 'auto'} alignmentFactors={alignmentFactors} text={options.text} width={width} height={height} theme={theme} />} />;
}
function Bars(props) {
  const theme = useTheme2(); const { width, height, options, data } = props;
  if (!data.series.length) return <NoData data={data} />;
  const vs = values(props, theme, false); const align = getDisplayValueAlignmentFactors(vs);
  return <VizRepeater getValues={() => vs} getAlignmentFactors={() => align} source={data} width={width} height={height} renderCounter={props.renderCounter} itemSpacing={8} minVizHeight={10} orientation={options.orientation ?? VizOrientation.Horizontal}
    renderValue={({ value, width, height, alignmentFactors, orientation }) => <BarGauge value={value.display} field={value.field} display={value.view?.getFieldDisplayProcessor(value.colIndex)} theme={theme} width={width} height={height} orientation={orientation} displayMode={options.displayMode ?? 'gradient'} showUnfilled={options.showUnfilled ?? true} itemSpacing={8} lcdCellWidth={12} alignmentFactors={alignmentFactors} text={options.text} valueDisplayMode="color" />} />;
}
// @grafana/ui 13 no longer exports Gauge; a plain arc is enough to check value, thresholds and unit
function GaugePanel(props) {
  const theme = useTheme2(); const { width, height, data } = props;
  if (!data.series.length) return <NoData data={data} />;
  const vs = values(props, theme, false); const n = vs.length || 1; const w = width / n; const r = Math.min(w, height * 1.3) / 2 - 12;
  const arc = (p) => { const a = Math.PI * (1 - p); return [w / 2 + r * Math.cos(a), height * 0.75 - r * Math.sin(a)]; };
  return <div style={{ display: 'flex' }}>{vs.map((v, i) => { const p = Math.max(0, Math.min(1, v.display.percent ?? 0)); const [x0, y0] = arc(0), [x1, y1] = arc(1), [xp, yp] = arc(p);
    return <svg key={i} width={w} height={height}><path d={`M${x0},${y0} A${r},${r} 0 0 1 ${x1},${y1}`} stroke={theme.colors.background.secondary} strokeWidth="16" fill="none" /><path d={`M${x0},${y0} A${r},${r} 0 0 1 ${xp},${yp}`} stroke={v.display.color} strokeWidth="16" fill="none" /><text x={w / 2} y={height * 0.72} textAnchor="middle" fontSize="26" fill={v.display.color}>{formattedValueToString(v.display)}</text><text x={w / 2} y={height * 0.92} textAnchor="middle" fontSize="12" fill={theme.colors.text.secondary}>{v.display.title}</text></svg>; })}</div>;
}
function Tab({ data, fieldConfig, width, height, options }) {
  if (!data.series.some((f) => f.length)) return <NoData data={data} fieldConfig={fieldConfig} />;
  return <Table data={data.series[options.frameIndex ?? 0]} width={width} height={height} columnMinWidth={80} initialSortBy={options.sortBy} cellHeight={options.cellHeight} />;
}
// state-timeline: own SVG, colours and texts from Grafana's display processor (mappings, thresholds)
function States({ data, width, height, timeRange, options }) {
  const theme = useTheme2(); const rows = [];
  for (const f of data.series) { const t = f.fields.find((x) => x.type === FieldType.time); if (!t) continue; for (const v of f.fields) if (v !== t && v.type !== FieldType.time) rows.push({ name: getFieldDisplayName(v, f, data.series), t, v }); }
  if (!rows.length) return <NoData data={data} />;
  const L = 16 + 7 * Math.max(...rows.map((r) => r.name.length)), B = 44, from = timeRange.from.valueOf(), to = timeRange.to.valueOf(), W = width - L - 8, H = (height - B) / rows.length; const X = (ms) => L + ((ms - from) / (to - from)) * W; const seen = new Map();
  const svg = rows.map((r, i) => { const runs = []; for (let k = 0; k < r.t.values.length; k++) { const val = r.v.values[k]; const last = runs[runs.length - 1]; if (last && last.val === val) last.b = k; else { if (last) last.b = k; runs.push({ val, a: k, b: k }); } }
    return <g key={i}><text x={L - 8} y={i * H + H / 2 + 4} textAnchor="end" fontSize="12" fill={theme.colors.text.primary}>{r.name}</text>{runs.filter((s) => s.val != null).map((s, k) => { const d = r.v.display(s.val); const text = formattedValueToString(d); seen.set(text, d.color); const x = X(r.t.values[s.a]), w = Math.max(1, X(r.t.values[s.b]) - x); return <g key={k}><rect x={x} y={i * H + H * 0.1} width={w} height={H * (options.rowHeight ?? 0.9)} fill={d.color} fillOpacity={(r.v.config.custom?.fillOpacity ?? 70) / 100} />{w > 50 && options.showValue !== 'never' && <text x={x + w / 2} y={i * H + H / 2 + 4} textAnchor="middle" fontSize="11" fill="#fff">{text}</text>}</g>; })}</g>; });
  const n = Math.max(1, Math.floor(W / 90)); const ticks = Array.from({ length: n }, (_, i) => i / n).map((p) => { const ms = from + p * (to - from); return <text key={p} x={X(ms)} y={height - 28} fontSize="11" fill={theme.colors.text.secondary}>{new Date(ms).toISOString().slice(5, 16).replace('T', ' ')}</text>; });
  return <div><svg width={width} height={height - 20}>{svg}{ticks}</svg><div style={{ height: 20 }}><VizLegend displayMode="list" placement="bottom" items={[...seen].map(([label, color]) => ({ label, color, yAxis: 1 }))} /></div></div>;
}
// heatmap: rows of le buckets, or any set of series, colour by value
function Heat({ data, width, height, timeRange }) {
  const theme = useTheme2(); const rows = data.series.filter(wantsTime); if (!rows.length) return <NoData data={data} />;
  const L = 70, B = 20; const max = Math.max(...rows.flatMap((f) => f.fields[1].values.filter((v) => v != null))); const H = (height - B) / rows.length; const from = timeRange.from.valueOf(), to = timeRange.to.valueOf();
  return <svg width={width} height={height}>{rows.map((f, i) => { const t = f.fields[0].values, v = f.fields[1].values, y = height - B - (i + 1) * H, w = ((width - L) * (t[1] - t[0])) / (to - from); return <g key={i}><text x={L - 6} y={y + H / 2 + 4} fontSize="11" textAnchor="end" fill={theme.colors.text.secondary}>{getFieldDisplayName(f.fields[1], f)}</text>{t.map((ms, k) => v[k] ? <rect key={k} x={L + ((ms - from) / (to - from)) * (width - L)} y={y} width={w + 0.5} height={H - 1} fill="#ff780a" fillOpacity={0.1 + 0.9 * (v[k] / max)} /> : null)}</g>; })}</svg>;
}
const Text = ({ options, replaceVariables }) => <div className="markdown-html" dangerouslySetInnerHTML={{ __html: options.mode === 'html' ? options.content : renderMarkdown(replaceVariables(options.content || '')) }} />;

export function registerPanels() {
  reg('timeseries', TS, { standardOptions: { [ 'color' ]: { defaultValue: { mode: FieldColorModeId.PaletteClassic }, settings: { byValueSupport: true, bySeriesSupport: true } } }, useCustomConfig: custom(CUSTOM, DEF) });
  reg('stat', Stat, { standardOptions: { color: { defaultValue: { mode: FieldColorModeId.Thresholds } } } });
  reg('bargauge', Bars, { standardOptions: { color: { defaultValue: { mode: FieldColorModeId.Thresholds } } } });
  reg('gauge', GaugePanel, { standardOptions: { color: { defaultValue: { mode: FieldColorModeId.Thresholds } } } });
  reg('table', Tab, { standardOptions: { color: { defaultValue: { mode: FieldColorModeId.Thresholds } } }, useCustomConfig: custom(CUSTOM, { align: 'auto', cellOptions: { type: 'auto' } }) });
  reg('state-timeline', States, { standardOptions: { color: { defaultValue: { mode: FieldColorModeId.Thresholds } } }, useCustomConfig: custom(CUSTOM, { fillOpacity: 70, lineWidth: 0 }) });
  reg('heatmap', Heat, { useCustomConfig: custom(CUSTOM, {}) });
  reg('text', Text, {});
}
