// Mouse and keyboard of a Wayland desktop, by the devices that the agent makes there.

import { always } from '../desktop/waiting.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Devices, Hand, Keys, Point } from '../desktop/devices.ts';
import type { Size } from '../desktop/picture/picture.ts';
import { unlessAborted } from '@cubicle/contract/unless-aborted.ts';
import { Compositor } from './compositor.ts';
import { Grip } from './grip.ts';
import { VirtualHand } from './hand.ts';
import { VirtualKeyboard } from './keyboard.ts';
import type { Programs } from './programs.ts';

interface Joined {
  readonly compositor: Compositor;
  readonly keyboard: VirtualKeyboard;
}

export class SwayDevices implements Devices {
  readonly #programs: Programs;
  readonly #screen: (context: Context) => Promise<Size>;
  #joining: Promise<Joined> | undefined;
  #joined: Joined | undefined;
  #position: Point | undefined;
  #sharing = 0;

  constructor(programs: Programs, screen: (context: Context) => Promise<Size>) {
    this.#programs = programs;
    this.#screen = screen;
  }

  /** The compositor tells nobody. It is where we put it, as long as nobody else can have moved it. */
  async position(): Promise<Point | undefined> {
    return this.#sharing > 0 ? undefined : this.#position;
  }

  async sharing(viewing: Promise<void>): Promise<void> {
    this.#sharing += 1;
    try {
      await viewing;
    } finally {
      this.#sharing -= 1;
      this.#position = undefined;
    }
  }

  async during(context: Context, work: (hand: Hand, keys: Keys) => Promise<void>): Promise<void> {
    const [screen, { compositor, keyboard }] = await Promise.all([
      this.#screen(context),
      this.#join(context),
    ]);
    const grip = new Grip();
    const hand = new VirtualHand(compositor, screen, grip);
    try {
      await work(hand, keyboard.keys(context, grip));
    } catch (error) {
      // Why it failed is what the caller hears, not that letting go failed too.
      await this.#end(compositor, hand, grip).catch(() => {});
      throw error;
    }
    await this.#end(compositor, hand, grip);
  }

  async #end(compositor: Compositor, hand: VirtualHand, grip: Grip): Promise<void> {
    if (hand.position !== undefined) this.#position = hand.position;
    grip.letGo();
    await compositor.settled(always);
  }

  /** The devices that there are, or new ones. */
  async #join(context: Context): Promise<Joined> {
    if (this.#joined?.compositor.lost === false) return this.#joined;
    this.#joining ??= this.#connect().finally(() => {
      this.#joining = undefined;
    });
    return unlessAborted(context, this.#joining);
  }

  async #connect(): Promise<Joined> {
    this.#position = undefined;
    const compositor = await Compositor.open(this.#programs);
    this.#joined = { compositor, keyboard: new VirtualKeyboard(compositor) };
    return this.#joined;
  }
}
