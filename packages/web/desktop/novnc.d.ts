// As much of noVNC as is used here; it ships no types.
declare module '@novnc/novnc' {
  export default class RFB extends EventTarget {
    constructor(target: HTMLElement, channel: WebSocket, options?: { shared?: boolean });
    viewOnly: boolean;
    scaleViewport: boolean;
    background: string;
    focusOnClick: boolean;
    qualityLevel: number;
    compressionLevel: number;
    focus(): void;
    disconnect(): void;
    clipboardPasteFrom(text: string): void;
    toDataURL(type?: string, quality?: number): string;
  }
}
