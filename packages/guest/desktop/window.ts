// Windows as every kind of desktop tells of them, and what users do to them.

export interface WindowInfo {
  /** `0x` and hexadecimal digits. */
  readonly id: string;
  readonly title: string;
  readonly class: string;
  readonly type: string;
  /** Absent when the window does not say. */
  readonly pid?: number;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly focused: boolean;
  /** False when it is minimised. */
  readonly visible: boolean;
}

export function idOf(window: number): string {
  return `0x${window.toString(16)}`;
}

/** Panels and the desktop itself: there without the user having opened them. */
export function isFurniture({ type }: WindowInfo): boolean {
  return type === 'dock' || type === 'desktop';
}

export interface Stack {
  /** The lowest first. */
  readonly windows: readonly number[];
  /** Nothing when no window is active. */
  readonly active: number | undefined;
}

export type WindowAction =
  | { readonly action: 'close' }
  | { readonly action: 'focus' | 'raise' | 'minimize' | 'maximize' | 'unmaximize' }
  | { readonly action: 'move'; readonly x: number; readonly y: number }
  | { readonly action: 'resize'; readonly width: number; readonly height: number };

export interface WindowOutcome {
  readonly gone: boolean;
  /** Null when it is gone, or when it is done but cannot be described. */
  readonly window: WindowInfo | null;
}
