// What X11 calls the symbols on keys, and their numbers. Every name that is met in practice; any other
// character has its own name, or the form U20AC.

/** Numbered one after the other. */
function inOrder(first: number, names: string): [string, number][] {
  return names
    .trim()
    .split(/\s+/)
    .map((name, i) => [name, first + i]);
}

/** Numbers where `-` stands for one without a name that is used. */
const named = [
  ...inOrder(
    0x20,
    `space exclam quotedbl numbersign dollar percent ampersand apostrophe parenleft parenright asterisk
    plus comma minus period slash 0 1 2 3 4 5 6 7 8 9 colon semicolon less equal greater question at
    A B C D E F G H I J K L M N O P Q R S T U V W X Y Z
    bracketleft backslash bracketright asciicircum underscore grave
    a b c d e f g h i j k l m n o p q r s t u v w x y z braceleft bar braceright asciitilde`,
  ),
  ...inOrder(
    0xa0,
    `nobreakspace exclamdown cent sterling currency yen brokenbar section diaeresis copyright
    ordfeminine guillemotleft notsign hyphen registered macron degree plusminus twosuperior
    threesuperior acute mu paragraph periodcentered cedilla onesuperior masculine guillemotright
    onequarter onehalf threequarters questiondown Agrave Aacute Acircumflex Atilde Adiaeresis Aring AE
    Ccedilla Egrave Eacute Ecircumflex Ediaeresis Igrave Iacute Icircumflex Idiaeresis ETH Ntilde
    Ograve Oacute Ocircumflex Otilde Odiaeresis multiply Oslash Ugrave Uacute Ucircumflex Udiaeresis
    Yacute THORN ssharp agrave aacute acircumflex atilde adiaeresis aring ae ccedilla egrave eacute
    ecircumflex ediaeresis igrave iacute icircumflex idiaeresis eth ntilde ograve oacute ocircumflex
    otilde odiaeresis division oslash ugrave uacute ucircumflex udiaeresis yacute thorn ydiaeresis`,
  ),
  ...inOrder(0xff08, 'BackSpace Tab Linefeed Clear - Return'),
  ...inOrder(0xff13, 'Pause Scroll_Lock Sys_Req'),
  ...inOrder(0xff1b, 'Escape'),
  ...inOrder(
    0xff20,
    'Multi_key Kanji Muhenkan Henkan_Mode Romaji Hiragana Katakana Hiragana_Katakana',
  ),
  ...inOrder(0xff28, 'Zenkaku Hankaku Zenkaku_Hankaku'),
  ...inOrder(0xff31, 'Hangul - - Hangul_Hanja'),
  ...inOrder(0xff50, 'Home Left Up Right Down Page_Up Page_Down End Begin'),
  ...inOrder(0xff55, 'Prior Next'),
  ...inOrder(0xff60, 'Select Print Execute Insert - Undo Redo Menu Find Cancel Help Break'),
  ...inOrder(0xff7e, 'Mode_switch Num_Lock KP_Space'),
  ...inOrder(0xff89, 'KP_Tab'),
  ...inOrder(0xff8d, 'KP_Enter'),
  ...inOrder(0xff91, 'KP_F1 KP_F2 KP_F3 KP_F4 KP_Home KP_Left KP_Up KP_Right KP_Down KP_Page_Up'),
  ...inOrder(0xff9b, 'KP_Page_Down KP_End KP_Begin KP_Insert KP_Delete'),
  ...inOrder(0xff9a, 'KP_Prior KP_Next'),
  ...inOrder(0xffaa, 'KP_Multiply KP_Add KP_Separator KP_Subtract KP_Decimal KP_Divide'),
  ...inOrder(0xffb0, 'KP_0 KP_1 KP_2 KP_3 KP_4 KP_5 KP_6 KP_7 KP_8 KP_9'),
  ...inOrder(0xffbd, 'KP_Equal'),
  ...Array.from({ length: 35 }, (_, i): [string, number] => [`F${i + 1}`, 0xffbe + i]),
  ...inOrder(0xffe1, 'Shift_L Shift_R Control_L Control_R Caps_Lock Shift_Lock Meta_L Meta_R'),
  ...inOrder(0xffe9, 'Alt_L Alt_R Super_L Super_R Hyper_L Hyper_R'),
  ...inOrder(0xffff, 'Delete'),
  ...inOrder(0xfe03, 'ISO_Level3_Shift'),
  ...inOrder(0xfe08, 'ISO_Next_Group - ISO_Prev_Group'),
  ...inOrder(0xfe20, 'ISO_Left_Tab'),
  ...inOrder(
    0xfe50,
    `dead_grave dead_acute dead_circumflex dead_tilde dead_macron dead_breve dead_abovedot
    dead_diaeresis dead_abovering dead_doubleacute dead_caron dead_cedilla dead_ogonek`,
  ),
  ...inOrder(0x20ac, 'EuroSign'),
  ...inOrder(0x1008ff02, 'XF86MonBrightnessUp XF86MonBrightnessDown'),
  ...inOrder(
    0x1008ff11,
    `XF86AudioLowerVolume XF86AudioMute XF86AudioRaiseVolume XF86AudioPlay XF86AudioStop XF86AudioPrev
    XF86AudioNext XF86HomePage XF86Mail XF86Start XF86Search XF86AudioRecord XF86Calculator`,
  ),
  ...inOrder(
    0x1008ff26,
    'XF86Back XF86Forward XF86Stop XF86Refresh XF86PowerOff XF86WakeUp XF86Eject',
  ),
  ...inOrder(0x1008ff2f, 'XF86Sleep XF86Favorites XF86AudioPause XF86AudioMedia XF86MyComputer'),
  ...inOrder(0x1008ff2d, 'XF86ScreenSaver XF86WWW'),
  ...inOrder(0x1008ff57, 'XF86Copy XF86Cut'),
  ...inOrder(0x1008ff6d, 'XF86Paste'),
  ...inOrder(0x1008ff81, 'XF86Tools'),
  ...inOrder(0x1008ffb2, 'XF86AudioMicMute'),
].filter(([name]) => name !== '-');

export const keysyms: ReadonlyMap<string, number> = new Map(named);

const unicode = 0x01000000;

/** Characters of Latin-1 are their own symbols; all others have one by their number. */
export function keysymOf(codePoint: number): number {
  const latin =
    (codePoint >= 0x20 && codePoint <= 0x7e) || (codePoint >= 0xa0 && codePoint <= 0xff);
  return latin ? codePoint : unicode + codePoint;
}
