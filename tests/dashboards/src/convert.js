import { EmbeddedScene, SceneGridLayout, SceneGridItem, SceneGridRow, SceneTimeRange, SceneVariableSet, DataSourceVariable, QueryVariable, CustomVariable, ConstantVariable, TextBoxVariable, IntervalVariable, VariableValueSelectors, SceneTimePicker, SceneRefreshPicker, SceneControlsSpacer, SceneQueryRunner, SceneDataTransformer, VizPanel, behaviors } from '@grafana/scenes';
import { DashboardCursorSync } from '@grafana/data';
const all = (c) => (Array.isArray(c?.value) ? c.value : c?.value ?? '');
function variable(v, over) {
  const base = { name: v.name, label: v.label, description: v.description, hide: v.hide, skipUrlSync: true, value: over[v.name] ?? all(v.current), text: over[v.name] ?? v.current?.text ?? '' };
  switch (v.type) {
    case 'datasource': return new DataSourceVariable({ ...base, pluginId: v.query, regex: v.regex || '', isMulti: v.multi });
    case 'query': return new QueryVariable({ ...base, datasource: v.datasource, query: v.query, regex: v.regex || '', sort: v.sort, refresh: v.refresh, isMulti: v.multi, includeAll: v.includeAll, allValue: v.allValue, defaultToAll: [all(v.current)].flat().includes('$__all') && !over[v.name] });
    case 'custom': return new CustomVariable({ ...base, query: v.query, isMulti: v.multi, includeAll: v.includeAll });
    case 'interval': return new IntervalVariable({ ...base, intervals: v.query.split(',') });
    case 'constant': return new ConstantVariable({ ...base, value: v.query });
    case 'textbox': return new TextBoxVariable({ ...base, value: v.query });
    default: throw new Error('variable type ' + v.type);
  }
}
function panel(p) {
  let $data;
  if (p.targets?.length) {
    $data = new SceneQueryRunner({ datasource: p.datasource, queries: p.targets, maxDataPoints: p.maxDataPoints ?? undefined, minInterval: p.interval });
    if (p.transformations?.length) $data = new SceneDataTransformer({ $data, transformations: p.transformations });
  }
  return new SceneGridItem({ x: p.gridPos.x, y: p.gridPos.y, width: p.gridPos.w, height: p.gridPos.h, isDraggable: false, isResizable: false,
    body: new VizPanel({ key: 'panel-' + p.id, title: p.title, description: p.description, pluginId: p.type, pluginVersion: p.pluginVersion, options: p.options ?? {}, fieldConfig: p.fieldConfig ?? { defaults: {}, overrides: [] }, displayMode: p.transparent ? 'transparent' : 'default', $data }) });
}
export function dashboardToScene(d, over = {}) {
  const children = []; let row = null;
  for (const p of d.panels) {
    if (p.type === 'row') {
      row = new SceneGridRow({ key: 'panel-' + p.id, title: p.title, isCollapsed: false, x: 0, y: p.gridPos.y, width: 24, height: 1, children: (p.panels ?? []).map(panel) });
      children.push(row);
    } else if (row) row.setState({ children: [...row.state.children, panel(p)] });
    else children.push(panel(p));
  }
  return new EmbeddedScene({
    $timeRange: new SceneTimeRange({ from: d.time.from, to: d.time.to, timeZone: d.timezone || 'browser' }),
    $variables: new SceneVariableSet({ variables: (d.templating?.list ?? []).map((v) => variable(v, over)) }),
    $behaviors: [new behaviors.CursorSync({ sync: d.graphTooltip ?? DashboardCursorSync.Off })],
    controls: [new VariableValueSelectors({}), new SceneControlsSpacer(), new SceneTimePicker({}), new SceneRefreshPicker({})],
    body: new SceneGridLayout({ isLazy: false, children }),
  });
}
