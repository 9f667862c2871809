// How many directories may be watched in all. Each takes one of the kernel's watches, which the guest's own
// programs want too, and about two kilobytes here.

const most = { ofTree: 4_096, inAll: 8_192 };

export class Room {
  #taken = 0;

  /** False: there is none left for a tree that has so many. */
  take(ofTree: number): boolean {
    if (ofTree >= most.ofTree || this.#taken >= most.inAll) return false;
    this.#taken += 1;
    return true;
  }

  give(): void {
    this.#taken -= 1;
  }
}
