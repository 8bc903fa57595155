import React from 'react';
import { createRoot } from 'react-dom/client';
import { MemoryRouter } from 'react-router-dom';
import { boot } from './boot.js';
import { dashboardToScene } from './convert.js';
import { registerPanels } from './panels.jsx';
import { registerProm } from './datasource.js';
import { ThemeContext, createTheme } from '@grafana/data';
import { GlobalStyles, PortalContainer } from '@grafana/ui';
import { UrlSyncContextProvider } from '@grafana/scenes';

(async () => {
  await boot();
  const theme = createTheme({ colors: { mode: new URLSearchParams(location.search).get('theme') || 'dark' } });
  registerPanels();
  registerProm('prom');
  const name = new URLSearchParams(location.search).get('dash') || 'apu-overview';
  const dash = await (await fetch('/dash/' + name + '.json')).json();
  const vars = Object.fromEntries([...new URLSearchParams(location.search)].filter(([k]) => k.startsWith('var-')).map(([k, v]) => [k.slice(4), v]));
  const q = new URLSearchParams(location.search);
  if (q.get('from')) dash.time = { from: q.get('from'), to: q.get('to') };
  const scene = dashboardToScene(dash, vars);
  window.__scene = scene;
  createRoot(document.getElementById('root')).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <MemoryRouter>
        <div style={{ background: theme.colors.background.canvas, minHeight: '100vh', padding: 8 }}>
          <scene.Component model={scene} />
        </div>
        <PortalContainer />
      </MemoryRouter>
    </ThemeContext.Provider>
  );
})().catch((e) => { console.error('BOOT', e && e.stack || e); window.__bootError = String(e && e.stack || e); });
