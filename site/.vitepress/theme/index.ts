import type { Theme } from 'vitepress';
import { onContentUpdated } from 'vitepress';
import DefaultTheme from 'vitepress/theme-without-fonts';
import landing from './landing.vue';
import layout from './layout.vue';
import './style.css';
import { keepChosenTabs, showChosenTabs } from './tabs.ts';

export default {
  extends: DefaultTheme,
  Layout: layout,
  enhanceApp({ app }) {
    app.component('landing', landing);
    if (!import.meta.env.SSR) keepChosenTabs();
  },
  setup() {
    onContentUpdated(showChosenTabs);
  },
} satisfies Theme;
